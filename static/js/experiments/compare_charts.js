// The comparison: one chart per metric, one line per experiment; fetched anew while one of them may still run.
import { MetricCharts } from "../charts/metric_charts.js";
import { colorName, lineTrace, namesOf, wordsOf } from "../charts/traces.js";
import { getJson } from "../lib/requests.js";

const REFRESH_MS = 10000;
const runs = JSON.parse(document.getElementById("runs").textContent);

class ComparisonCharts extends MetricCharts {
  async fetchAll() {
    this.answers = await Promise.all(runs.map((run) => getJson(run.url)));
    // Each metric gets a chart of its own: lines of several experiments and several metrics would mix.
    const known = new Set(this.answers.flatMap((answer) => Object.keys(answer.series)));
    this.panels = this.answers[0].panels.flatMap((panel) => namesOf(panel, known).map((name) => ({ ...panel, title: this.titleOf(panel, name), name, limit: null })));
    const numZero = this.panels.filter((panel) => !this.hasNumbers(panel)).length;
    document.querySelector("[data-left-out]").textContent = numZero ? `${numZero} that are 0 everywhere are left out` : "";
  }

  titleOf(panel, name) {
    return panel.names.length === 1 && !panel.names[0].endsWith("/") ? panel.title : `${panel.title}: ${wordsOf(name)}`;
  }

  // A replay buffer or a KL term that is switched off is a chart of zeros.
  hasNumbers(panel) {
    return this.answers.some(({ series }) => series[panel.name]?.y.some((value) => value !== 0));
  }

  tracesOf(panel) {
    if (!this.hasNumbers(panel)) return [];
    return this.answers.flatMap(({ series }, index) => {
      const line = series[panel.name];
      return line ? [lineTrace(runs[index].name, line, index)] : [];
    });
  }
}

for (const mark of document.querySelectorAll("[data-run]")) mark.style.background = `var(${colorName(mark.dataset.run)})`;

const holder = document.querySelector("[data-charts]");
const charts = new ComparisonCharts(holder, { plotly: holder.dataset.plotly });
const isRunning = () => document.querySelector(".compare .tone-active") !== null;
setInterval(() => isRunning() && charts.refresher.soon(), REFRESH_MS);
