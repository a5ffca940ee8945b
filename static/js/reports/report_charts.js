// The frozen charts of a report, and their export as SVG, PNG, CSV and LaTeX.
import { drawChart, placeOf } from "../charts/chart_figures.js";
import { layoutOf } from "../charts/chart_layout.js";
import { evaluationTraces, lineTrace } from "../charts/traces.js";
import { chartExports } from "../lib/exports.js";

const OF_AN_EXPERIMENT = /^(#\d+) (.+)$/;
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const FEW_LINES = 4;
const LEGEND_ROW_PX = 19;
const report = document.querySelector("[data-report]");
const holder = report.querySelector("[data-report-charts]");
const charts = JSON.parse(document.getElementById("report-charts").textContent);

// Of several experiments ("#12 solved"), a metric has one colour and an experiment one kind of line.
function linesOf({ lines }) {
  const named = lines.map(({ name }) => OF_AN_EXPERIMENT.exec(name)?.slice(1) ?? ["", name]);
  const [owners, metrics] = [0, 1].map((part) => [...new Set(named.map((parts) => parts[part]))]);
  return lines.map((line, index) => {
    const [owner, metric] = [owners.indexOf(named[index][0]), metrics.indexOf(named[index][1])];
    const trace = lineTrace(line.name, line, metrics.length > 1 ? metric : owner);
    if (metrics.length > 1) trace.line.dash = DASHES[owner % DASHES.length];
    return trace;
  });
}

function tracesOf(chart) {
  const traces = linesOf(chart);
  return chart.kind === "success" ? [...traces, ...evaluationTraces(chart.evaluations)] : traces;
}

// A frozen page may be printed, where nothing scrolls: the legend is shown whole.
function layoutWhole(chart, traces) {
  const layout = layoutOf(chart, traces);
  return { ...layout, height: layout.height + LEGEND_ROW_PX * Math.max(0, traces.length - FEW_LINES), legend: { ...layout.legend, maxheight: 2 * layout.height } };
}

function draw() {
  const places = charts.map((chart) => placeOf(holder, charts, chart, (figure, place) => figure.querySelector("figcaption").after(chartExports(chart, place, linksOf(chart)))));
  for (const [index, chart] of charts.entries()) {
    const traces = tracesOf(chart);
    drawChart(places[index], traces, layoutWhole(chart, traces));
  }
}

function linksOf(chart) {
  return Object.fromEntries(["csv", "tex"].map((format) => [format, `${report.dataset.base}${chart.key}.${format}`]));
}

function start() {
  const script = document.createElement("script");
  script.src = report.dataset.plotly;
  script.onload = draw;
  document.head.append(script);
  document.addEventListener("theme:changed", draw);
}

if (holder) start();
