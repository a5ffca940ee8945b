// Metric charts over steps: smoothed, logarithmic or pinned at will, with markers, and navigable.
import { make } from "../lib/dom.js";
import { alarmsOf } from "./alarm_shapes.js";
import { ChartChoices } from "./chart_choices.js";
import { markerAxis, markerTraces, stageOf } from "./chart_markers.js";
import { ChartNavigation } from "./chart_navigation.js";
import { MetricCharts } from "./metric_charts.js";
import { smoothedTraces } from "./smoothing.js";

const PINNED = "Pinned";
const LEARNING = "Learning";

export class StepCharts extends MetricCharts {
  constructor(root, { bar, choose = () => {}, ...options }) {
    super(root, options);
    this.markers = [];
    this.zoom = null;
    this.choices = new ChartChoices(() => this.rebuild());
    if (bar) this.choices.wire(bar);
    this.flatBox = bar?.querySelector("[data-flat]");
    this.showsFlat = false;
    this.flatBox?.querySelector("input").addEventListener("change", ({ target }) => {
      this.showsFlat = target.checked;
      this.rebuild();
    });
    this.navigation = new ChartNavigation(root, choose);
  }

  // Markers from the answer's first step on take the place of those that we know.
  take(answer) {
    const fromStep = answer.from_step ?? 0;
    this.markers = [...this.markers.filter(({ step }) => step < fromStep), ...(answer.markers ?? [])];
    super.take(answer);
  }

  panelsInOrder() {
    const pinned = this.panels.filter(({ title }) => this.choices.has("pinned", title));
    return [...pinned.map((panel) => ({ ...panel, group: PINNED, stage: stageOf(panel) })), ...this.panels.filter((panel) => !pinned.includes(panel))];
  }

  linesOf(panel) {
    return super.tracesOf(panel);
  }

  // A panel of the machinery whose lines never move says nothing: it is left out, until it is pinned or all are
  // wanted. That learning stands still says much, and so does what an alarm is about.
  isFlat(panel) {
    if (panel.group === LEARNING || alarmsOf(panel, this.alarms).length) return false;
    const lines = this.linesOf(panel);
    const moves = ({ y }) => y.length < 2 || y.some((value) => value !== y[0]);
    return lines.length > 0 && !lines.some((line) => line.error_y || moves(line)) && !this.choices.has("pinned", panel.title);
  }

  tracesOf(panel) {
    if (!this.showsFlat && this.isFlat(panel)) return [];
    const lines = this.linesOf(panel).flatMap((trace) => smoothedTraces(trace, this.choices.smoothing));
    if (!lines.length) return [];
    const markers = this.markers.filter(({ stage }) => stage === (panel.stage ?? stageOf(panel)));
    return [...lines, ...markerTraces(markers, (kind) => !this.choices.has("hidden", kind))];
  }

  layoutOf(panel, traces) {
    const lines = traces.filter(({ yaxis, showlegend }) => !yaxis && showlegend !== false);
    const layout = super.layoutOf(panel, lines);
    if (this.choices.has("log", panel.title)) layout.yaxis = { ...layout.yaxis, type: "log", range: undefined, rangemode: undefined, tickformat: undefined, dtick: undefined };
    if (this.zoom && (panel.stage ?? stageOf(panel)) === this.zoom.stage) layout.xaxis = { ...layout.xaxis, range: this.zoom.range, dtick: undefined, nticks: 6 };
    return { ...layout, dragmode: false, yaxis2: markerAxis };
  }

  zoomTo(range) {
    this.zoom = range && { stage: this.navigation.stage, range: [range[0] - 0.5, range[1] + 0.5] };
    this.draw();
  }

  draw() {
    if (this.flatBox) {
      const number = this.panels.filter((panel) => this.isFlat(panel)).length;
      this.flatBox.hidden = !number;
      this.flatBox.querySelector("[data-flat-words]").textContent = `Show ${number} that never change`;
    }
    super.draw();
    this.navigation?.showRange();
  }

  // Pinned charts move to the top: all are placed anew.
  rebuild() {
    for (const place of this.root.querySelectorAll(".js-plotly-plot")) window.Plotly.purge(place);
    this.root.replaceChildren();
    this.draw();
  }

  furnish(figure, panel) {
    figure.dataset.stage = panel.stage ?? stageOf(panel);
    const tools = make("span", "chart-tools");
    tools.append(this.toggleOf(panel, "log", "log", "Log axis"), this.toggleOf(panel, "pinned", "pin", "Pin to the top"));
    figure.querySelector("figcaption").append(tools);
  }

  toggleOf({ title }, list, text, words) {
    const button = Object.assign(make("button", "chart-tool", text), { type: "button", title: words });
    button.setAttribute("aria-label", `${words}: ${title}`);
    button.setAttribute("aria-pressed", String(this.choices.has(list, title)));
    button.addEventListener("click", () => this.choices.toggle(list, title));
    return button;
  }
}
