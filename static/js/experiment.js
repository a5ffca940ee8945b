// The experiment page: live parts, charts, log; number keys change the tab.
import { Charts } from "./charts.js";
import { bind } from "./lib/keys.js";
import { showPill, subscribe } from "./lib/live.js";
import { swapImage } from "./lib/morph.js";
import { startParts } from "./lib/parts.js";
import { LogTail } from "./log.js";

const page = document.getElementById("experiment");

showPill();
startParts();

for (const [index, tab] of document.querySelectorAll("[data-tab]").entries()) {
  bind(String(index + 1), tab.firstChild.textContent.trim(), () => tab.click(), "Experiment");
}

const holder = document.querySelector("[data-charts]");
if (holder) {
  const charts = new Charts(holder, { url: page.dataset.metricsUrl, plotly: page.dataset.plotly });
  subscribe(page.dataset.stream, page.dataset.after, ({ type }) => {
    if (type.startsWith("metrics.") || type.startsWith("evaluation.")) charts.refreshSoon();
    if (type === "stream.reset" || type === "experiment.updated") charts.restart();
  });
}

// A new screenshot is shown at once; the tile's words follow with its part.
if (document.querySelector("[data-part=wall]")) {
  subscribe(page.dataset.stream, page.dataset.after, ({ type, payload }) => {
    if (type !== "turn.added" || document.hidden) return;
    const tile = document.querySelector(`[data-trajectory="${payload.trajectory}"]`);
    const image = tile?.querySelector("img");
    if (!image) return;
    const fresh = image.cloneNode();
    fresh.src = `/frames/${payload.frame}.${image.getAttribute("src").split(".").slice(1).join(".")}`;
    swapImage(image, fresh);
    const turn = tile.querySelector("[data-turn]");
    turn.textContent = turn.textContent.replace(/\d+/, payload.index + 1);
  });
}

const gpuCharts = document.querySelector("[data-gpu-charts]");
if (gpuCharts) import("./fleet_charts.js").then(({ startHistory }) => startHistory(gpuCharts));

const log = document.querySelector("[data-log]");
if (log) {
  const tail = new LogTail(log);
  // What a run writes into its log it mostly also tells: then there is something to read.
  subscribe(page.dataset.stream, page.dataset.after, () => tail.wake());
}
