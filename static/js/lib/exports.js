// Charts and tables as files, where they stand. Pictures are made here; CSV and LaTeX by the server, from what the
// page shows. A [data-export] inside a [data-export-table] stands behind its table.
import { make } from "./dom.js";
import { postForFile, Refused } from "./requests.js";

const PICTURE_SIZE = { width: 900, height: 480 };
const PICTURES = ["svg", "png"];
const TEXTS = [["csv", "CSV"], ["tex", "LaTeX"]];

// The four files of a chart as buttons; `links`: where CSV and LaTeX lie already, by format.
export function chartExports(panel, place, links = null) {
  const row = make("span", "exports");
  for (const format of PICTURES) row.append(button(panel.title, format.toUpperCase(), () => window.Plotly.downloadImage(place, { ...PICTURE_SIZE, format, scale: 2, filename: panel.title })));
  for (const [format, label] of TEXTS) {
    if (links) row.append(named(Object.assign(make("a", "", label), { href: links[format], download: "" }), panel.title, label));
    else row.append(button(panel.title, label, () => save(format, chartBlock(panel, place))));
  }
  return row;
}

// The same behind one word, where there are many charts.
export function exportMenu(panel, place) {
  const menu = make("details", "export-menu");
  menu.dataset.menu = "";
  const summary = make("summary", "", "Export");
  summary.setAttribute("aria-label", `Export ${panel.title}`);
  menu.append(summary, chartExports(panel, place));
  menu.querySelector(".exports").addEventListener("click", () => (menu.open = false));
  return menu;
}

function button(title, label, act) {
  const node = Object.assign(make("button", "", label), { type: "button" });
  node.addEventListener("click", act);
  return named(node, title, label);
}

function named(node, title, label) {
  node.setAttribute("aria-label", `${title} as ${label}`);
  return node;
}

function chartBlock(panel, place) {
  const lines = place.data.filter((trace) => trace.visible !== "legendonly" && trace.x?.length && trace.showlegend !== false).map(({ name, x, y }) => ({ name: name ?? panel.title, x: [...x], y: [...y] }));
  return { title: panel.title, unit: panel.unit ?? "", kind: place.layout.yaxis?.type === "log" ? "log" : "line", lines };
}

function tableBlock(table, title) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]).map((row) => [...row.cells]).filter((cells) => cells.length === heads.length);
  const isForActing = (index) => rows.some((cells) => cells[index].matches(".row-actions, :has(> input)"));
  const kept = heads.flatMap((head, index) => (textOf(head) && !isForActing(index) ? [index] : []));
  return { title, head: kept.map((index) => textOf(heads[index])), rows: rows.map((cells) => kept.map((index) => textOf(cells[index]))) };
}

const textOf = (cell) => cell.innerText.replace(/\s+/g, " ").trim();

async function save(format, block) {
  try {
    const { file, name } = await postForFile(`/exports/${format}/`, block);
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    window.alert(error.message);
  }
}

export function startTableExports() {
  document.addEventListener("click", (event) => {
    const asked = event.target.closest("[data-export-table] [data-export]");
    if (!asked) return;
    const menu = asked.closest("[data-export-table]");
    const place = menu.previousElementSibling;
    const table = place.matches("table") ? place : place.querySelector("table");
    const title = menu.closest(".panel")?.querySelector("h2")?.innerText || document.querySelector("h1")?.innerText || document.title;
    save(asked.dataset.export, tableBlock(table, title));
  });
}
