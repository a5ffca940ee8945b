// The task editor: fields and JSON are two views of one text, in step with each other, which the server checks
// while people type. Of a task that was made at a desktop, ticked checks become its evaluator.
import { postForm, Refused } from "../lib/requests.js";
import { showHtml } from "../lib/server_html.js";
import { joined, parted } from "./evaluator_parts.js";
import { look } from "./task_runs.js";

const PAUSE_MS = 300;
const form = document.querySelector("[data-editor]");
const text = form.elements.text;
const problem = form.querySelector("[data-conversion]");
const result = form.querySelector("[data-result]");
const tried = form.querySelector("[data-tried]");
const fields = [...form.querySelectorAll("[data-field]")];
const checks = form.querySelector("[data-checks]");
const proposed = JSON.parse(document.getElementById("task-proposal")?.textContent ?? "[]");
const examples = JSON.parse(document.getElementById("task-examples").textContent);
let running = null;
let timer = 0;
let unread = null; // the area whose JSON cannot be read: one of the fields, or the text of all of them

class NotJson extends Error {
  constructor(area, words) {
    super(words);
    this.area = area;
  }
}

function parsed(area, otherwise = "") {
  try {
    return JSON.parse(area.value || otherwise);
  } catch (error) {
    throw new NotJson(area, `${area.labels[0]?.firstChild.textContent.trim()} is not valid JSON: ${error.message}`);
  }
}

function showFields() {
  const values = parsed(text);
  if (values === null || typeof values !== "object" || Array.isArray(values)) throw new NotJson(text, "");
  for (const field of fields) {
    const value = field.dataset.field.split(".").reduce((inner, key) => inner?.[key], values);
    if (field.dataset.kind === "json") field.value = JSON.stringify(value ?? (field.dataset.field === "config" ? [] : {}), null, 2);
    else field.value = value ?? "";
  }
}

// A number that is none stays as it was typed, and the server says what is wrong with it.
function valueOf(field) {
  if (field.dataset.kind === "json") return parsed(field, "null");
  if (field.dataset.kind !== "number") return field.value;
  if (!field.value.trim()) return null;
  return Number.isFinite(Number(field.value)) ? Number(field.value) : field.value;
}

// Keys that no field shows stay.
function readFields() {
  const values = parsed(text);
  for (const field of fields) {
    const [key, place] = field.dataset.field.split(".");
    if (place === undefined) values[key] = valueOf(field);
    else (values[key] ??= [])[Number(place)] = valueOf(field);
  }
  text.value = JSON.stringify(values, null, 2);
}

// What is wrong with the text is the server's to say, at its line. Of a field it knows nothing: the text still
// holds what the field said before.
function sync(convert) {
  unread?.removeAttribute("aria-invalid");
  unread = null;
  problem.textContent = "";
  try {
    convert();
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    unread = error.area;
    unread.setAttribute("aria-invalid", "true");
    if (unread !== text) problem.textContent = error.message;
  }
  problem.hidden = !problem.textContent;
  result.hidden = !problem.hidden;
  return !unread;
}

function isUnread() {
  if (unread) (problem.hidden ? result : problem).scrollIntoView({ block: "center" });
  return unread !== null;
}

// On narrow pages one of the two is seen at a time.
function open(view) {
  form.dataset.shows = view;
  for (const tab of form.querySelectorAll("[data-view]")) tab.setAttribute("aria-selected", tab.dataset.view === view);
}

async function check() {
  running?.abort();
  if (!problem.hidden) return;
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

// --- what is chosen from lists ---------------------------------------------------------------------------

const fieldOf = (name) => fields.find((field) => field.dataset.field === name);

function put(name, value) {
  fieldOf(name).value = JSON.stringify(value, null, 2);
}

function useChecks() {
  const chosen = [...checks.querySelectorAll("input:checked")].map((box) => proposed[box.value]);
  const { func, result: getter, expected, options, ...rest } = valueOf(fieldOf("evaluator")) ?? {};
  put("evaluator", chosen.length ? { ...joined(chosen), ...rest, conj: "and", wait_s: rest.wait_s ?? 1 } : {});
}

function add(name, example) {
  const field = fieldOf(name);
  if (name === "config") put(name, [...valueOf(field), example]);
  else if (name === "oracle") {
    const oracle = valueOf(field) ?? {};
    put(name, { ...oracle, actions: [...(oracle.actions ?? []), example] });
  } else {
    const evaluator = valueOf(field) ?? {};
    put(name, { ...evaluator, ...joined([...parted(evaluator), example]) });
  }
}

for (const select of form.querySelectorAll("[data-add]")) {
  for (const name of Object.keys(examples[select.dataset.add])) select.add(new Option(name, name));
}

// --- a try of what is not saved --------------------------------------------------------------------------

async function tryOut() {
  if (isUnread()) return;
  tried.textContent = "Queued…";
  try {
    const answer = await postForm(form.dataset.try, new FormData(form));
    tried.dataset.runs = `${form.dataset.try}?tried=${answer.headers.get("x-tried")}`;
    showHtml(tried, await answer.text());
    look(tried);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    tried.textContent = error.message;
  }
}

form.addEventListener("input", (event) => {
  const { target } = event;
  if (target === text) sync(showFields);
  else if (target.matches("[data-add]")) {
    const name = target.value;
    target.value = "";
    if (name && sync(() => add(target.dataset.add, examples[target.dataset.add][name]))) sync(readFields);
  } else if (checks?.contains(target)) sync(useChecks) && sync(readFields);
  else if (target.dataset.field) sync(readFields);
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE_MS);
});
form.addEventListener("click", (event) => {
  const tab = event.target.closest("[data-view]");
  if (tab) open(tab.dataset.view);
  const line = event.target.closest("[data-line]");
  if (line) goToLine(Number(line.dataset.line));
  if (event.target.closest("[data-try-out]")) tryOut();
});
form.addEventListener("submit", (event) => {
  if (isUnread()) event.preventDefault();
});

if (!sync(showFields)) open("json");
else if (checks) {
  sync(useChecks);
  sync(readFields);
  fieldOf("instruction").focus();
}
check();
form.querySelector(".task-fields").disabled = false; // from here on the fields are filled, and keep what is typed
