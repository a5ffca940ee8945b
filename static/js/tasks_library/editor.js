// The task editor: fields and JSON are two views of one text, which the server checks while people type.
import { postForm, Refused } from "../lib/requests.js";
import { showHtml } from "../lib/server_html.js";

const PAUSE_MS = 300;
const form = document.querySelector("[data-editor]");
const text = form.elements.text;
const problem = form.querySelector("[data-conversion]");
const result = form.querySelector("[data-result]");
const fields = [...form.querySelectorAll("[data-field]")];
let view = "form";
let running = null;
let timer = 0;

const parsed = (value, what) => {
  try {
    return JSON.parse(value);
  } catch (error) {
    throw new SyntaxError(`${what} is not valid JSON: ${error.message}`);
  }
};

function showFields() {
  const values = parsed(text.value, "The text");
  if (values === null || typeof values !== "object" || Array.isArray(values)) throw new SyntaxError("The text is not a JSON object.");
  for (const field of fields) {
    const value = field.dataset.field.split(".").reduce((inner, key) => inner?.[key], values);
    if (field.dataset.kind === "json") field.value = JSON.stringify(value ?? (field.dataset.field === "config" ? [] : {}), null, 2);
    else field.value = value ?? "";
  }
}

// A number that is none stays as it was typed, and the server says what is wrong with it.
function valueOf(field) {
  if (field.dataset.kind === "json") return parsed(field.value || "null", field.labels[0].firstChild.textContent.trim());
  if (field.dataset.kind !== "number") return field.value;
  if (!field.value.trim()) return null;
  return Number.isFinite(Number(field.value)) ? Number(field.value) : field.value;
}

// Keys that no field shows stay.
function readFields() {
  const values = parsed(text.value, "The text");
  for (const field of fields) {
    const [key, place] = field.dataset.field.split(".");
    if (place === undefined) values[key] = valueOf(field);
    else (values[key] ??= [])[Number(place)] = valueOf(field);
  }
  text.value = JSON.stringify(values, null, 2);
}

function sync(convert) {
  try {
    convert();
    problem.hidden = true;
    return true;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    problem.textContent = error.message;
    problem.hidden = false;
    return false;
  }
}

function open(wanted) {
  if (wanted === view || !sync(wanted === "form" ? showFields : readFields)) return;
  view = wanted;
  for (const pane of form.querySelectorAll("[data-pane]")) pane.hidden = pane.dataset.pane !== view;
  for (const tab of form.querySelectorAll("[data-view]")) tab.setAttribute("aria-selected", tab.dataset.view === view);
}

async function check() {
  if (view === "form" && !sync(readFields)) return;
  running?.abort();
  running = new AbortController();
  try {
    const answer = await postForm(form.dataset.check, new FormData(form), { signal: running.signal });
    showHtml(result, await answer.text());
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Refused)) throw error;
    result.textContent = error.message;
  }
}

function goToLine(line) {
  open("json");
  const lines = text.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  text.focus();
  text.setSelectionRange(start, start + lines[line - 1].length);
  text.scrollTop = (line - 4) * (text.scrollHeight / lines.length);
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE_MS);
});
form.addEventListener("click", (event) => {
  const tab = event.target.closest("[data-view]");
  if (tab) open(tab.dataset.view);
  const line = event.target.closest("[data-line]");
  if (line) goToLine(Number(line.dataset.line));
});
form.addEventListener("submit", (event) => {
  if (view === "form" && !sync(readFields)) event.preventDefault();
});

if (sync(showFields)) check();
else {
  view = "";
  open("json");
  check();
}
form.querySelector("[data-pane=form]").disabled = false; // from here on the fields are filled, and keep what is typed
