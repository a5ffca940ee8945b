// Ctrl+K: one list of all that can be done here. Pages come from the sidebar, actions from the page's own buttons
// and keys, rows from the server. A listbox in the sense of ARIA: the field keeps the focus.
import { boundKeys } from "./keyboard_shortcuts.js";
import { make } from "./dom.js";
import { getJson, Refused } from "./requests.js";

const WAIT_MS = 120;
const MAX_SHOWN = 14;
const NOT_ACTIONS = "[data-close-dialog], [data-palette], [data-menu-toggle]";
const dialog = document.getElementById("palette");
const field = dialog?.querySelector("input");
const list = dialog?.querySelector("[role=listbox]");
const status = dialog?.querySelector("[role=status]");
let commands = [];
let shown = [];
let chosen = 0;
let timer = 0;
let search = 0;

const words = (node) => (node.dataset.goLabel ?? node.getAttribute("aria-label") ?? node.textContent).trim().replace(/\s+/g, " ");

// What this page and the sidebar offer, each as {title, detail, keys, run}.
function offered() {
  const links = [...document.querySelectorAll(".sidebar [data-go]")].map((link) => ({
    title: words(link), detail: link.dataset.menu ?? "", keys: `g ${link.dataset.go}`, run: () => link.click(),
  }));
  const deeds = [...document.querySelectorAll(".page-actions :is(a, button), .viewer-deeds :is(a, button)")]
    .filter((node) => !node.matches(NOT_ACTIONS) && node.checkVisibility())
    .map((node) => ({ title: words(node), detail: "This page", keys: "", run: () => node.click() }));
  const keys = boundKeys().map(({ keys, label, run, group }) => ({ title: label, detail: group, keys, run: () => run(new KeyboardEvent("keydown")) }));
  return [...deeds, ...keys.filter(({ keys }) => !keys.startsWith("g ")), ...links];
}

function fits(command, wanted) {
  const text = `${command.title} ${command.detail}`.toLowerCase();
  return wanted.every((word) => text.includes(word));
}

const rank = (command, text) => (command.title.toLowerCase().startsWith(text) ? 0 : 1);

function show(found) {
  shown = found.slice(0, MAX_SHOWN);
  list.replaceChildren(...shown.map(option));
  choose(0);
  status.textContent = shown.length ? `${shown.length} found` : "Nothing found";
}

function option({ title, detail, keys }, index) {
  const row = make("div", "palette-row");
  row.id = `palette-${index}`;
  row.setAttribute("role", "option");
  row.append(make("span", "palette-title", title), make("span", "sub", detail ?? ""));
  if (keys) row.append(make("kbd", "", keys === " " ? "Space" : keys));
  row.addEventListener("click", () => run(index));
  return row;
}

function choose(index) {
  chosen = shown.length ? (index + shown.length) % shown.length : 0;
  for (const [place, row] of [...list.children].entries()) row.setAttribute("aria-selected", place === chosen);
  list.children[chosen]?.scrollIntoView({ block: "nearest" });
  if (shown.length) field.setAttribute("aria-activedescendant", `palette-${chosen}`);
  else field.removeAttribute("aria-activedescendant");
}

function run(index) {
  const command = shown[index];
  if (!command) return;
  dialog.close();
  if (command.run) command.run();
  else if (command.post) send(command);
  else location.assign(command.url);
}

// A change is a form like those of the pages: with its token, and the question before it.
function send({ url, confirm, confirm_detail: detail, title }) {
  const form = dialog.querySelector("form[data-do]");
  form.action = url;
  Object.assign(form.dataset, { confirm, confirmDetail: detail, confirmYes: title.split(" ")[0] });
  form.requestSubmit();
}

async function ask(text, number) {
  try {
    const { found } = await getJson(`${dialog.dataset.findUrl}?q=${encodeURIComponent(text)}`);
    if (number === search) show([...matching(text), ...found]);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (number === search) status.textContent = error.message;
  }
}

function matching(text) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = commands.filter((command) => fits(command, wanted));
  return wanted.length ? found.sort((one, other) => rank(one, wanted.join(" ")) - rank(other, wanted.join(" "))) : found;
}

function typed() {
  const text = field.value.trim();
  const number = ++search;
  show(matching(text));
  clearTimeout(timer);
  if (text) timer = setTimeout(() => ask(text, number), WAIT_MS);
}

function open() {
  if (dialog.open) return dialog.close();
  for (const other of document.querySelectorAll("dialog[open]")) other.close();
  commands = offered();
  field.value = "";
  dialog.showModal();
  typed();
}

const MOVES = { ArrowDown: () => choose(chosen + 1), ArrowUp: () => choose(chosen - 1), Enter: () => run(chosen) };

export function startPalette() {
  if (!dialog) return;
  field.addEventListener("input", typed);
  field.addEventListener("keydown", (event) => {
    if (!MOVES[event.key] || event.isComposing) return;
    event.preventDefault();
    MOVES[event.key]();
  });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k") return;
    event.preventDefault();
    open();
  });
  document.addEventListener("click", (event) => event.target.closest("[data-palette]") && open());
}
