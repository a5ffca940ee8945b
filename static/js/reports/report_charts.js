// The frozen charts of a report, and their export as SVG, PNG, CSV and LaTeX.
import { drawChart, placeOf } from "../charts/chart_figures.js";
import { layoutOf } from "../charts/chart_layout.js";
import { evaluationTraces, lineTrace } from "../charts/traces.js";
import { chartExports } from "../lib/exports.js";

const report = document.querySelector("[data-report]");
const holder = report.querySelector("[data-report-charts]");
const charts = JSON.parse(document.getElementById("report-charts").textContent);

function tracesOf(chart) {
  const traces = chart.lines.map((line, index) => lineTrace(line.name, line, index));
  return chart.kind === "success" ? [...traces, ...evaluationTraces(chart.evaluations)] : traces;
}

function draw() {
  const places = charts.map((chart) => placeOf(holder, charts, chart, (figure, place) => figure.querySelector("figcaption").after(chartExports(chart, place, linksOf(chart)))));
  for (const [index, chart] of charts.entries()) {
    const traces = tracesOf(chart);
    drawChart(places[index], traces, layoutOf(chart, traces));
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
