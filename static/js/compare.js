// The comparison: one chart per metric, one line per experiment; refetched while one of them may still run.
import { Charts, css } from "./charts.js";

const COLORS = ["--dh-accent", "--dh-good", "--dh-warning", "--dh-info", "--dh-bad", "--dh-gold"];
const REFRESH_MS = 10000;
const runs = JSON.parse(document.getElementById("runs").textContent);

class Comparison extends Charts {
  async fetchAll() {
    this.answers = await Promise.all(
      runs.map(async (run) => {
        const response = await fetch(run.url);
        if (!response.ok) throw new Error(String(response.status));
        return response.json();
      }),
    );
    // Each metric gets a chart of its own: lines of several experiments and several metrics would mix.
    this.panels = this.answers[0].panels.flatMap((panel) => this.namesOf(panel).map((name) => ({ ...panel, title: this.titleOf(panel, name), name, limit: null })));
    const numZero = this.panels.filter((panel) => !this.tells(panel)).length;
    document.querySelector("[data-left-out]").textContent = numZero ? `${numZero} that are 0 everywhere are left out` : "";
  }

  namesOf(panel) {
    const known = [...new Set(this.answers.flatMap((answer) => Object.keys(answer.series)))].sort();
    return panel.names.flatMap((name) => (name.endsWith("/") ? known.filter((key) => key.startsWith(name)) : known.filter((key) => key === name)));
  }

  titleOf(panel, name) {
    const words = name.split("/").slice(1).join("/").replace(/_s$/, "").replaceAll("_", " ");
    return panel.names.length === 1 && !panel.names[0].endsWith("/") ? panel.title : `${panel.title}: ${words}`;
  }

  // A replay buffer or a KL term that nobody switched on is a chart of zeros.
  tells(panel) {
    return this.answers.some(({ series }) => series[panel.name]?.y.some((value) => value !== 0));
  }

  tracesOf(panel) {
    if (!this.tells(panel)) return [];
    return this.answers.flatMap(({ series }, index) => {
      const line = series[panel.name];
      if (!line) return [];
      const color = css(COLORS[index]);
      return [{ name: runs[index].name, x: line.x, y: line.y, mode: line.x.length < 40 ? "lines+markers" : "lines", line: { color, width: 1.8 }, marker: { color, size: 4 }, hovertemplate: "%{y:.4g}" }];
    });
  }
}

for (const mark of document.querySelectorAll("[data-run]")) mark.style.background = `var(${COLORS[mark.dataset.run]})`;

const holder = document.querySelector("[data-charts]");
const charts = new Comparison(holder, { plotly: holder.dataset.plotly });
const isRunning = () => document.querySelector(".compare .tone-active") !== null;
setInterval(() => isRunning() && charts.refreshSoon(), REFRESH_MS);
