// The comparison: one chart per metric, one line per experiment; fetched anew while one of them may still run.
import { StepCharts } from "../charts/step_charts.js";
import { colorName, lineTrace, namesOf, wordsOf } from "../charts/traces.js";
import { getJson } from "../lib/requests.js";

const REFRESH_MS = 10000;
const runs = JSON.parse(document.getElementById("runs").textContent);

class ComparisonCharts extends StepCharts {
  words = "";

  async fetchAll() {
    this.answers = await Promise.all(runs.map((run) => getJson(run.url)));
    // Each metric gets a chart of its own: lines of several experiments and several metrics would mix.
    const known = new Set(this.answers.flatMap((answer) => Object.keys(answer.series)));
    const charted = this.answers[0].panels.flatMap((panel) => namesOf(panel, known).map((name) => ({ ...panel, title: this.titleOf(panel, name), name, limit: null })));
    const others = [...known].filter((name) => !charted.some((panel) => panel.name === name)).sort();
    this.panels = [...charted, ...others.map((name) => ({ title: name, name, names: [name], group: "Other metrics", kind: "line", limit: null }))];
    const numZero = this.panels.filter((panel) => !this.hasNumbers(panel)).length;
    document.querySelector("[data-left-out]").textContent = numZero ? `${numZero} that are 0 everywhere are left out` : "";
  }

  titleOf(panel, name) {
    return panel.names.length === 1 && !panel.names[0].endsWith("/") ? panel.title : `${panel.title}: ${wordsOf(name)}`;
  }

  // Two runs that stay apart are worth a chart, however still each is.
  isFlat() {
    return false;
  }

  // A replay buffer or a KL term that is switched off is a chart of zeros.
  hasNumbers(panel) {
    return this.answers.some(({ series }) => series[panel.name]?.y.some((value) => value !== 0));
  }

  panelsInOrder() {
    const words = this.words.toLowerCase().split(/\s+/);
    return super.panelsInOrder().filter(({ title, name }) => words.every((word) => `${title} ${name}`.toLowerCase().includes(word)));
  }

  // A metric that is looked for is shown, whatever it is.
  linesOf(panel) {
    if (!this.words && !this.hasNumbers(panel)) return [];
    return this.answers.flatMap(({ series }, index) => {
      const line = series[panel.name];
      return line ? [lineTrace(runs[index].name, line, index)] : [];
    });
  }
}

for (const mark of document.querySelectorAll("[data-run]")) mark.style.background = `var(${colorName(mark.dataset.run)})`;

const holder = document.querySelector("[data-charts]");
const charts = new ComparisonCharts(holder, { plotly: holder.dataset.plotly, bar: document.querySelector("[data-chart-bar]") });
document.querySelector("[data-metric-filter]").addEventListener("input", ({ target }) => {
  charts.words = target.value.trim();
  charts.rebuild();
});
const isRunning = () => document.querySelector(".compare .tone-active") !== null;
setInterval(() => isRunning() && charts.refresher.soon(), REFRESH_MS);
