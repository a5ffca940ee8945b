// Two metrics of one experiment against each other: a point per step, from dark (early) to bright (late).
import { getJson } from "../lib/requests.js";
import { css, wordsOf } from "./traces.js";

export class MetricScatter {
  constructor(root, charts) {
    this.root = root;
    this.charts = charts;
    this.place = root.querySelector("[data-scatter-place]");
    this.selects = [...root.querySelectorAll("select")];
    root.addEventListener("toggle", () => this.draw());
    root.addEventListener("change", () => this.draw());
    document.addEventListener("theme:changed", () => this.draw());
  }

  fillChoices() {
    const names = [...this.charts.series.keys()].sort();
    for (const [index, select] of this.selects.entries()) {
      if (select.options.length === names.length) continue;
      const chosen = select.value || (names.includes(select.dataset.first) ? select.dataset.first : names[Math.min(index, names.length - 1)]);
      select.replaceChildren(...names.map((name) => new Option(name, name, false, name === chosen)));
    }
  }

  // Every point of both: the charts' own series are thinned, each at steps of its own.
  async draw() {
    if (!this.root.open || !window.Plotly || !this.charts.series.size) return;
    this.fillChoices();
    const names = this.selects.map(({ value }) => value);
    const { series } = await getJson(`${this.charts.url}?${names.map((name) => `name=${encodeURIComponent(name)}`).join("&")}`);
    if (this.selects.some(({ value }, index) => value !== names[index])) return; // the later choice draws
    const [first, second] = names.map((name) => new Map(series[name].x.map((step, index) => [step, series[name].y[index]])));
    const steps = [...first.keys()].filter((step) => second.has(step));
    const trace = {
      x: steps.map((step) => first.get(step)), y: steps.map((step) => second.get(step)), mode: "markers", text: steps.map((step) => `Step ${step}`), hovertemplate: "%{text}: %{x:.4g}, %{y:.4g}<extra></extra>",
      marker: { size: 6, color: steps, colorscale: "Viridis", showscale: true, colorbar: { title: { text: "step" }, thickness: 8, tickfont: { color: css("--dh-muted") } } },
    };
    const axis = { gridcolor: css("--dh-border"), zeroline: false, automargin: true };
    const [xTitle, yTitle] = this.selects.map(({ value }) => wordsOf(value));
    window.Plotly.react(this.place, [trace], {
      height: 320, margin: { l: 50, r: 10, t: 10, b: 40 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent", dragmode: false,
      font: { family: "inherit", size: 11, color: css("--dh-text") }, xaxis: { ...axis, title: { text: xTitle } }, yaxis: { ...axis, title: { text: yTitle } },
    }, { displayModeBar: false, responsive: true });
  }
}
