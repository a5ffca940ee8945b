// The experiment page: charts, screenshots of its desktops, log; number keys change the tab.
import { MetricScatter } from "../charts/metric_scatter.js";
import { StepCharts } from "../charts/step_charts.js";
import { StepRangeBar } from "../charts/step_range_bar.js";
import { frameUrl } from "../lib/frame_images.js";
import { bind } from "../lib/keyboard_shortcuts.js";
import { subscribe } from "../lib/live_events.js";
import { newestOfTile, showTile } from "../lib/server_html.js";
import { LogTail } from "./log_tail.js";

const TAB_KEYS = "1234567890"; // there is no key for further tabs
const page = document.getElementById("experiment");
const onEvent = (handler) => subscribe(page.dataset.stream, page.dataset.after, handler);

for (const [index, tab] of [...document.querySelectorAll("[data-tab]")].slice(0, TAB_KEYS.length).entries()) {
  bind(TAB_KEYS[index], tab.firstChild.textContent.trim(), () => tab.click(), "Experiment");
}

const holder = document.querySelector("[data-charts]");
if (holder) {
  const options = { url: page.dataset.metricsUrl, plotly: page.dataset.plotly, bar: document.querySelector("[data-chart-bar]") };
  const charts = new StepCharts(holder, { ...options, choose: (first, last) => range.show(first, last) });
  const range = new StepRangeBar(document.querySelector("[data-step-range]"), (steps) => {
    if (!steps) charts.navigation.clear();
    charts.zoomTo(steps);
  });
  new MetricScatter(document.querySelector("[data-scatter]"), charts);
  onEvent(({ type }) => {
    if (type.startsWith("metrics.") || type.startsWith("evaluation.")) charts.refresher.soon();
    if (type === "stream.reset" || type === "experiment.updated") charts.restart();
  });
}

// A new screenshot is shown with its turn at once; the last action follows with the part.
if (document.querySelector("[data-part=wall]")) {
  onEvent(({ type, payload }) => {
    if (type !== "turn.added" || document.hidden) return;
    const tile = document.querySelector(`[data-trajectory="${payload.trajectory}"]`);
    if (!tile) return;
    const fresh = newestOfTile(tile).cloneNode(true);
    const image = fresh.querySelector("img");
    if (!image || fresh.dataset.trajectory !== String(payload.trajectory)) return;
    const [, ...ending] = image.getAttribute("src").split(".");
    image.setAttribute("src", frameUrl(payload.frame, ending.join(".")));
    const turn = fresh.querySelector("[data-turn]");
    turn.textContent = turn.textContent.replace(/\d+/, payload.index + 1);
    showTile(tile, fresh);
  });
}

const gpuCharts = document.querySelector("[data-gpu-charts]");
if (gpuCharts) import("../charts/history_charts.js").then(({ startHistory }) => startHistory(gpuCharts));

const log = document.querySelector("[data-log]");
if (log) {
  const tail = new LogTail(log);
  // What an experiment writes into its log mostly comes with an event: then there is something to read.
  onEvent(() => tail.wake());
}
