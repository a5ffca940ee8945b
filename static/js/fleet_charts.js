// History of the fleet: the experiment charts with a time axis (x in milliseconds), read anew every ten seconds.
import { Charts } from "./charts.js";

const REFRESH_MS = 10000;

// Half a desktop is no tick of an axis.
function isFewOfSomething(traces) {
  const values = traces.flatMap((trace) => [...trace.y]).filter((value) => value !== null);
  return values.every(Number.isInteger) && Math.max(0, ...values) <= 4;
}

class History extends Charts {
  // Buckets shift with the window: every answer is the whole history.
  async fetchAll() {
    const response = await fetch(this.url);
    if (!response.ok) throw new Error(String(response.status));
    const answer = await response.json();
    this.span = answer.span;
    this.take(answer);
  }

  layoutOf(panel, traces) {
    const layout = super.layoutOf(panel, traces);
    layout.xaxis = { ...layout.xaxis, type: "date", tickformat: undefined, dtick: undefined, nticks: 5, range: this.span };
    if (panel.kind === "line") layout.yaxis = { ...layout.yaxis, rangemode: "tozero", ...(isFewOfSomething(traces) && { dtick: 1 }) };
    return layout;
  }

  showEmpty() {
    this.root.innerHTML = '<p class="sub charts-empty">The first sample comes ten seconds after the start.</p>';
  }
}

export function startHistory(root) {
  const history = new History(root, { url: root.dataset.url, plotly: root.dataset.plotly });
  setInterval(() => history.refreshSoon(), REFRESH_MS);
}
