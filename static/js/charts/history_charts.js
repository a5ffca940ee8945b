// History of hosts and GPUs: metric charts with a time axis (x in milliseconds), fetched anew every ten seconds.
import { getJson } from "../lib/requests.js";
import { MetricCharts } from "./metric_charts.js";

const REFRESH_MS = 10000;

// Half a desktop is no tick of an axis.
function isSmallCount(traces) {
  const values = traces.flatMap((trace) => [...trace.y]).filter((value) => value !== null);
  return values.every(Number.isInteger) && Math.max(0, ...values) <= 4;
}

class HistoryCharts extends MetricCharts {
  emptyNote = "The first sample comes ten seconds after the start.";

  // Buckets shift with the window: every answer is the whole history.
  async fetchAll() {
    const answer = await getJson(this.url);
    this.span = answer.span;
    this.take(answer);
  }

  layoutOf(panel, traces) {
    const layout = super.layoutOf(panel, traces);
    layout.xaxis = { ...layout.xaxis, type: "date", tickformat: undefined, dtick: undefined, nticks: 5, range: this.span };
    if (panel.kind === "line") layout.yaxis = { ...layout.yaxis, rangemode: "tozero", ...(isSmallCount(traces) && { dtick: 1 }) };
    return layout;
  }
}

export function startHistory(root) {
  const history = new HistoryCharts(root, { url: root.dataset.url, plotly: root.dataset.plotly });
  setInterval(() => history.refresher.soon(), REFRESH_MS);
}
