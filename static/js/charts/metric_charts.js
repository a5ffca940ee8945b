// The metric panels: Plotly is loaded when the panels come near the screen, drawn at most once a second.
import { Refresher } from "../lib/refresher.js";
import { getJson, Refused } from "../lib/requests.js";
import { alarmsOf } from "./alarm_shapes.js";
import { drawChart, placeOf, removeNotes, showNote } from "./chart_figures.js";
import { layoutOf } from "./chart_layout.js";
import { evaluationTraces, lineTrace, namesOf, wordsOf } from "./traces.js";

const MIN_MS = 1000;
const MAX_POINTS = 2000; // of a line that grows; then the whole is fetched anew, thinned by the server

export class MetricCharts {
  emptyNote = "The first numbers appear after the first optimiser step.";

  constructor(root, { url, plotly }) {
    this.root = root;
    this.url = url;
    this.plotlyUrl = plotly;
    this.series = new Map();
    this.panels = [];
    this.evaluations = [];
    this.alarms = [];
    this.isVisible = false;
    this.refresher = new Refresher(() => this.refresh(), {
      minMs: MIN_MS,
      mayRun: () => this.isVisible,
      failed: () => root.classList.add("is-stale"),
    });
    document.addEventListener("theme:changed", () => this.draw());
    new IntersectionObserver((entries) => {
      this.isVisible = entries.some((entry) => entry.isIntersecting);
      if (this.isVisible) this.refresher.soon();
    }, { rootMargin: "300px" }).observe(root);
  }

  async refresh() {
    await this.loadPlotly();
    await this.fetchAll();
    this.draw();
    this.root.classList.remove("is-stale");
  }

  // Only what is new, until there is too much of it.
  async fetchAll() {
    const lines = [...this.series.values()];
    const isLong = lines.some((line) => line.x.length > MAX_POINTS);
    const fromStep = isLong ? 0 : Math.max(0, ...lines.map((line) => line.x.at(-1) ?? 0));
    this.take(await getJson(`${this.url}?from_step=${fromStep}`));
  }

  // A resumed attempt repeats steps: everything from the answer's first step on is replaced.
  take({ panels, evaluations, alarms = [], series, from_step: fromStep }) {
    this.panels = panels;
    this.evaluations = evaluations;
    this.alarms = alarms;
    if (!fromStep) this.series.clear();
    for (const [name, line] of Object.entries(series)) {
      const known = this.series.get(name) ?? { x: [], y: [] };
      const kept = known.x.findIndex((step) => step >= fromStep);
      const end = kept < 0 ? known.x.length : kept;
      this.series.set(name, { x: [...known.x.slice(0, end), ...line.x], y: [...known.y.slice(0, end), ...line.y] });
    }
  }

  // A later attempt begins before the newest step that we know.
  restart() {
    this.series.clear();
    this.refresher.soon();
  }

  loadPlotly() {
    this.plotlyReady ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = this.plotlyUrl;
      script.onload = resolve;
      script.onerror = () => {
        this.plotlyReady = null;
        reject(new Refused(0, "Plotly could not be loaded."));
      };
      document.head.append(script);
    });
    return this.plotlyReady;
  }

  draw() {
    if (!window.Plotly || !this.panels.length) return;
    const panels = this.panelsInOrder();
    const shown = panels.map((panel) => [panel, this.tracesOf(panel)]).filter(([, traces]) => traces.length);
    if (!shown.length) return showNote(this.root, this.emptyNote);
    removeNotes(this.root);
    // All places first: a chart takes its width from its row, and later neighbours would make it narrower.
    const places = shown.map(([panel]) => placeOf(this.root, panels, panel, (figure) => this.furnish(figure, panel)));
    for (const [index, [panel, traces]] of shown.entries()) {
      drawChart(places[index], traces, this.layoutOf(panel, traces));
    }
  }

  tracesOf(panel) {
    const traces = namesOf(panel, this.series.keys()).map((name, index) => lineTrace(wordsOf(name), this.series.get(name), index));
    if (panel.kind === "success" && this.evaluations.length) traces.push(...evaluationTraces(this.evaluations));
    return traces;
  }

  panelsInOrder() {
    return this.panels;
  }

  // Called once for every new chart.
  furnish() {}

  layoutOf(panel, traces) {
    return layoutOf(panel, traces, alarmsOf(panel, this.alarms));
  }
}
