// The <figure> of each panel, in the order of the panels, whichever has numbers first.
import { make } from "../lib/dom.js";
import { exportMenu } from "../lib/exports.js";

// Plotly follows the window's width by itself, but not a chart that joins its row later.
const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) if (target.isConnected && target.classList.contains("js-plotly-plot")) window.Plotly.Plots.resize(target);
});

// The element that Plotly draws into; made when it is not there yet.
export function placeOf(root, panels, panel, furnish) {
  const id = `chart-${panel.title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  const known = document.getElementById(id);
  if (known) return known;
  const figure = make("figure", "chart");
  figure.dataset.order = panels.indexOf(panel);
  const place = make("div");
  place.id = id;
  figure.append(captionOf(panel), place);
  furnish(figure, place);
  if (!figure.querySelector(".exports")) figure.querySelector("figcaption").append(exportMenu(panel, place));
  insertInOrder(root, figure);
  widths.observe(place);
  if (panel.group) placeGroup(root, panels, panel);
  return place;
}

// Drawn a second time, a chart takes its height from its place when the window changes: without one it would have none.
export function drawChart(place, traces, layout) {
  place.style.height = `${layout.height}px`;
  window.Plotly.react(place, traces, layout, { displayModeBar: false, responsive: true });
}

export function showNote(root, text) {
  root.replaceChildren(make("p", "sub charts-empty", text));
}

// Skeletons and notes go when there is something to see.
export function removeNotes(root) {
  for (const other of root.querySelectorAll(":scope > :not(.chart, .chart-group)")) other.remove();
}

function captionOf(panel) {
  const caption = make("figcaption", "", panel.title);
  if (panel.unit) caption.append(make("span", "sub", ` ${panel.unit}`));
  if (panel.help) {
    const mark = Object.assign(make("button", "chart-help", "?"), { type: "button", title: panel.help });
    mark.setAttribute("aria-label", `${panel.title}: ${panel.help}`);
    caption.append(mark);
  }
  return caption;
}

// The heading of a group stands before its first chart.
function placeGroup(root, panels, panel) {
  const order = panels.findIndex((other) => other.group === panel.group) - 0.5;
  if (root.querySelector(`.chart-group[data-order="${order}"]`)) return;
  const heading = make("h3", "chart-group", panel.group);
  heading.dataset.order = order;
  insertInOrder(root, heading);
}

function insertInOrder(root, node) {
  const later = [...root.querySelectorAll(".chart, .chart-group")].find((other) => Number(other.dataset.order) > Number(node.dataset.order));
  root.insertBefore(node, later ?? null);
}
