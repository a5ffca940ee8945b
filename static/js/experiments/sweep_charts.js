// The charts of a sweep: curves with their spread over seeds, and parallel coordinates; fetched anew while it runs.
import { MetricCharts } from "../charts/metric_charts.js";
import { colorName, css } from "../charts/traces.js";
import { getJson } from "../lib/requests.js";

const REFRESH_MS = 10000;
const CURVES = { title: "Mean over seeds", help: "One line per arm; the band spans its lowest and highest seed.", kind: "line" };
const PARALLEL = { title: "Parallel coordinates", help: "One line per arm through its values, ending at what it is judged by. The best ones are green.", kind: "parallel" };

class SweepCharts extends MetricCharts {
  emptyNote = "The first numbers appear when an experiment has measured the metric.";

  async fetchAll() {
    this.answer = await getJson(this.url);
    const { metric, num_left_out: leftOut, is_share: isShare } = this.answer;
    const title = `${CURVES.title}: ${metric}`;
    this.panels = [{ ...CURVES, title, kind: isShare ? "share" : "line", help: CURVES.help + (leftOut ? ` ${leftOut} worse arms are left out.` : "") }, PARALLEL];
  }

  tracesOf(panel) {
    return panel === PARALLEL ? this.answer.lines.map(parallelTrace) : this.answer.curves.flatMap(bandTraces);
  }

  layoutOf(panel, traces) {
    const layout = super.layoutOf(panel, traces);
    return panel === PARALLEL ? parallelLayout(layout, this.answer.axes) : curvesLayout(layout, this.answer.curves.length);
  }
}

// Lowest, highest (filled down to the lowest) and mean; only the mean is in the legend and under the pointer.
function bandTraces({ name, x, mean, low, high, num_seeds: numSeeds }, index) {
  const color = css(colorName(index));
  const edge = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false, legendgroup: name };
  const mode = x.length < 40 ? "lines+markers" : "lines";
  return [
    { ...edge, y: low },
    { ...edge, y: high, fill: "tonexty", fillcolor: `${color}2a` },
    { name, x, y: mean, mode, legendgroup: name, showlegend: true, line: { color, width: 2 }, marker: { color, size: 5 }, text: numSeeds.map((n) => `n = ${n}`), hovertemplate: "%{y:.3g} (%{text})" },
  ];
}

function parallelTrace({ name, y, good, is_final: isFinal }) {
  const color = good > 0.75 ? css("--dh-good") : good > 0.4 ? css("--dh-info") : css("--dh-neutral");
  return { name, x: y.map((_, place) => place), y, mode: "lines+markers", line: { color, width: good > 0.75 ? 2.6 : 1.4, dash: isFinal ? "solid" : "dot", shape: "spline", smoothing: 0.5 }, marker: { color, size: 5 }, hovertemplate: "%{fullData.name}<extra></extra>" };
}

// The names of arms are long: one a line, below the chart.
function curvesLayout(layout, numCurves) {
  const legendHeight = 20 * numCurves + 30;
  const legend = { ...layout.legend, orientation: "v", y: -24 / 200, yanchor: "top", tracegroupgap: 0 };
  return { ...layout, height: 206 + legendHeight, margin: { ...layout.margin, b: legendHeight }, legend };
}

function parallelLayout(layout, axes) {
  const muted = css("--dh-muted");
  const ticks = axes.flatMap(({ ticks: marks }, x) => marks.map(([y, text]) => ({ x, y, text, showarrow: false, xanchor: x === axes.length - 1 ? "right" : "left", xshift: x === axes.length - 1 ? -7 : 7, font: { size: 10, color: muted }, bgcolor: css("--dh-surface") })));
  const names = axes.map(({ label }, x) => ({ x, y: 1.16, text: label.split(".").at(-1), showarrow: false, xanchor: x === 0 ? "left" : x === axes.length - 1 ? "right" : "center", font: { size: 11, color: css("--dh-text") } }));
  const lines = axes.map((_, x) => ({ type: "line", x0: x, x1: x, y0: -0.04, y1: 1.04, line: { color: css("--dh-border-strong"), width: 1 } }));
  return {
    ...layout, height: 280, showlegend: false, hovermode: "closest", margin: { l: 10, r: 10, t: 8, b: 8 }, annotations: [...ticks, ...names], shapes: lines,
    xaxis: { visible: false, range: [-0.08, axes.length - 0.92], fixedrange: true }, yaxis: { visible: false, range: [-0.1, 1.24], fixedrange: true },
  };
}

const holder = document.querySelector("[data-charts]");
const charts = new SweepCharts(holder, { url: holder.dataset.url, plotly: holder.dataset.plotly });
const isRunning = () => document.querySelector("[data-sweep-status=running]") !== null;
setInterval(() => isRunning() && charts.refresher.soon(), REFRESH_MS);
