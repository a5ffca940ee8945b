// The frozen charts of a report, and their export as SVG, PNG, CSV and LaTeX.
import { placeOf } from "../charts/chart_figures.js";
import { layoutOf } from "../charts/chart_layout.js";
import { evaluationTraces, lineTrace } from "../charts/traces.js";
import { make } from "../lib/dom.js";

const EXPORT_SIZE = { width: 900, height: 480 };
const report = document.querySelector("[data-report]");
const holder = report.querySelector("[data-report-charts]");
const charts = JSON.parse(document.getElementById("report-charts").textContent);

function tracesOf(chart) {
  const traces = chart.lines.map((line, index) => lineTrace(line.name, line, index));
  return chart.kind === "success" ? [...traces, ...evaluationTraces(chart.evaluations)] : traces;
}

function draw() {
  const places = charts.map((chart) => placeOf(holder, charts, chart, (figure) => figure.querySelector("figcaption").after(exportsOf(chart))));
  for (const [index, chart] of charts.entries()) {
    const traces = tracesOf(chart);
    window.Plotly.react(places[index], traces, layoutOf(chart, traces), { displayModeBar: false, responsive: true });
  }
}

function exportsOf(chart) {
  const row = make("span", "report-exports");
  for (const format of ["svg", "png"]) {
    const button = Object.assign(make("button", "", format.toUpperCase()), { type: "button" });
    button.setAttribute("aria-label", `${chart.title} as ${format.toUpperCase()}`);
    button.addEventListener("click", () => window.Plotly.downloadImage(row.parentElement.querySelector(".js-plotly-plot"), { ...EXPORT_SIZE, format, scale: 2, filename: chart.title }));
    row.append(button);
  }
  for (const [format, label] of [["csv", "CSV"], ["tex", "LaTeX"]]) {
    const link = Object.assign(make("a", "", label), { href: `${report.dataset.base}${chart.key}.${format}`, download: "" });
    link.setAttribute("aria-label", `${chart.title} as ${label}`);
    row.append(link);
  }
  return row;
}

function start() {
  const script = document.createElement("script");
  script.src = report.dataset.plotly;
  script.onload = draw;
  document.head.append(script);
  document.addEventListener("theme:changed", draw);
}

if (holder) start();
