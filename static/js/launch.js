// The launch form: marks of change, search, YAML both ways, pre-flight while typing.
const DEBOUNCE_MS = 350;
const form = document.getElementById("launch");
const textarea = form.querySelector("textarea.yaml");
let timer = 0;

const knobs = () => [...form.querySelectorAll("[data-knob]")];
const fieldOf = (knob) => knob.querySelector("input:not([type=hidden]), select");
const valueOf = (field) => (field.type === "checkbox" ? String(field.checked) : field.value.trim());
const sourceIs = (name) => form.elements.source.value === name;

// --- marks -----------------------------------------------------------------------------------------
function refreshMarks() {
  let total = 0;
  for (const section of form.querySelectorAll("[data-section]")) {
    let count = 0;
    for (const knob of section.querySelectorAll("[data-knob]")) {
      const field = fieldOf(knob);
      const isChanged = valueOf(field) !== knob.dataset.baseline;
      knob.classList.toggle("is-changed", isChanged);
      if (field.type === "checkbox") knob.querySelector("[data-switch-word]").textContent = field.checked ? "on" : "off";
      count += isChanged;
    }
    const badge = section.querySelector("[data-changed-count]");
    badge.hidden = count === 0;
    badge.textContent = `${count} changed`;
    total += count;
  }
  form.querySelector("[data-changed-total]").textContent = total;
}

// A group of knobs matters when its provider is chosen, or when another group that matters chooses it.
function groupsThatMatter() {
  const headings = [...form.querySelectorAll("[data-group]")];
  const groupOf = (path) => form.querySelector(`[data-knob="${path}"]`)?.dataset.inGroup;
  const isChosen = (path, value) => valueOf(fieldOf(form.querySelector(`[data-knob="${path}"]`))) === value;
  const matter = (heading, seen = []) => !heading.dataset.when || heading.dataset.when.split(" ").some((condition) => {
    const [path, value] = condition.split("=");
    const chooser = headings.find(({ dataset }) => dataset.group === groupOf(path));
    return isChosen(path, value) && (!chooser || (!seen.includes(chooser) && matter(chooser, [...seen, heading])));
  });
  return new Set(headings.filter((heading) => matter(heading)).map(({ dataset }) => dataset.group));
}

function refreshFilter() {
  const groups = groupsThatMatter();
  const words = form.querySelector("[data-knob-search]").value.toLowerCase().split(/\s+/).filter(Boolean);
  const changedOnly = form.querySelector("[data-changed-only]").checked;
  const isFiltered = words.length > 0 || changedOnly;
  let shown = 0;
  for (const section of form.querySelectorAll("[data-section]")) {
    let visible = 0;
    for (const knob of section.querySelectorAll("[data-knob]")) {
      const fits = words.every((word) => knob.dataset.words.includes(word)) && (!changedOnly || knob.matches(".is-changed, .has-error"));
      const { inGroup } = knob.dataset;
      const matters = !inGroup || groups.has(inGroup) || words.length > 0 || knob.matches(".is-changed, .has-error");
      knob.hidden = !fits || !matters;
      visible += !knob.hidden;
    }
    for (const heading of section.querySelectorAll("[data-group]")) {
      heading.hidden = !section.querySelector(`[data-in-group="${heading.dataset.group}"]:not([hidden])`);
    }
    section.hidden = visible === 0;
    if (isFiltered && visible) section.open = true;
    shown += visible;
  }
  const empty = form.querySelector("[data-no-match]");
  empty.hidden = shown > 0;
  empty.textContent = changedOnly && !words.length ? "Nothing differs from the starting point." : "No knob matches.";
}

// --- errors and pre-flight -------------------------------------------------------------------------
function showErrors(errors) {
  for (const section of form.querySelectorAll("[data-section]")) {
    let count = 0;
    for (const knob of section.querySelectorAll("[data-knob]")) {
      const message = errors[knob.dataset.knob] ?? "";
      const line = knob.querySelector("[data-error]");
      line.hidden = !message;
      line.querySelector("span").textContent = message;
      knob.classList.toggle("has-error", Boolean(message));
      fieldOf(knob).classList.toggle("is-invalid", Boolean(message));
      fieldOf(knob).setAttribute("aria-invalid", String(Boolean(message)));
      count += Boolean(message);
    }
    section.querySelector("[data-error-count]").hidden = count === 0;
  }
  for (const line of form.querySelectorAll("[data-error-of]")) {
    const message = errors[line.dataset.errorOf] ?? "";
    line.hidden = !message;
    line.textContent = message;
    form.elements[line.dataset.errorOf].classList.toggle("is-invalid", Boolean(message));
  }
  const list = form.querySelector("[data-yaml-errors]");
  list.replaceChildren();
  if (!sourceIs("yaml")) return;
  for (const [path, message] of Object.entries(errors)) {
    const line = document.createElement("p");
    line.className = "field-error";
    const name = document.createElement("code");
    name.textContent = path;
    line.append(name, ` ${message}`);
    list.append(line);
  }
}

function checkSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => window.htmx.trigger(form, "preflight"), DEBOUNCE_MS);
}

form.addEventListener("htmx:afterSwap", (event) => {
  const result = document.getElementById("preflight-result");
  if (!result || !event.detail.target) return;
  const errors = document.getElementById("preflight-errors");
  if (errors) showErrors(JSON.parse(errors.textContent));
  const isBlocked = result.dataset.mayLaunch !== "yes";
  document.getElementById("launch-button").disabled = isBlocked && !Object.keys(JSON.parse(errors?.textContent ?? "{}")).length;
});
for (const failure of ["htmx:sendError", "htmx:responseError"]) {
  form.addEventListener(failure, () => {
    const result = document.getElementById("preflight-result");
    result.innerHTML = '<p class="sub">The server does not answer; pre-flight will be tried again at the next change.</p>';
    document.getElementById("launch-button").disabled = false;
  });
}

// --- YAML ------------------------------------------------------------------------------------------
async function post(url) {
  const response = await fetch(url, { method: "POST", body: new FormData(form) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response;
}

async function toYaml() {
  const { yaml } = await (await post(form.dataset.yamlUrl)).json();
  textarea.value = yaml;
}

async function toForm() {
  form.elements.source.value = "yaml";
  const html = await (await post(form.dataset.formUrl)).text();
  document.getElementById("knobs").outerHTML = html;
  refreshMarks();
  refreshFilter();
}

function showPane(name) {
  for (const pane of form.querySelectorAll("[data-pane]")) pane.hidden = pane.dataset.pane !== name;
  for (const tab of form.querySelectorAll("[data-view]")) tab.setAttribute("aria-selected", String(tab.dataset.view === name));
  for (const tool of form.querySelectorAll("[data-only]")) tool.hidden = tool.dataset.only !== name;
}

async function openView(name) {
  if (name === "yaml" && sourceIs("form")) {
    await toYaml();
    form.elements.source.value = "yaml";
  } else if (name === "form" && sourceIs("yaml")) {
    await toForm();
    // A syntax error cannot become fields: stay in the text, which is what would be sent.
    const isUnreadable = form.querySelector("#knobs .notice code")?.textContent === "yaml";
    if (isUnreadable) return checkSoon();
    form.elements.source.value = "form";
  }
  showPane(name);
  checkSoon();
}

async function importFile(file) {
  textarea.value = await file.text();
  form.elements.source.value = "yaml";
  showPane("yaml");
  await openView("form");
}

async function exportFile() {
  if (sourceIs("form")) await toYaml();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([textarea.value], { type: "application/yaml" }));
  const name = form.elements.experiment_name.value.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-");
  link.download = `${name || "experiment"}.yaml`;
  link.click();
  URL.revokeObjectURL(link.href);
}

// --- wiring ----------------------------------------------------------------------------------------
form.addEventListener("input", (event) => {
  if (event.target.matches("[data-knob-search], [data-changed-only]")) return refreshFilter();
  refreshMarks();
  if (event.target.matches("[data-knob] select")) refreshFilter();
  checkSoon();
});
form.addEventListener("change", (event) => {
  if (event.target.matches("[data-import]") && event.target.files.length) {
    importFile(event.target.files[0]);
    event.target.value = "";
  }
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("input:not([type=checkbox])")) event.preventDefault();
});
form.addEventListener("click", (event) => {
  const tab = event.target.closest("[data-view]");
  if (tab) openView(tab.dataset.view);
  if (event.target.closest("[data-export]")) exportFile();
  const reset = event.target.closest("[data-reset]");
  if (reset) {
    const knob = reset.closest("[data-knob]");
    const field = fieldOf(knob);
    if (field.type === "checkbox") field.checked = knob.dataset.baseline === "true";
    else field.value = knob.dataset.baseline;
    field.focus();
    refreshMarks();
    checkSoon();
  }
});
document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-focus]");
  if (!link) return;
  event.preventDefault();
  const own = form.querySelector(`[name="${CSS.escape(link.dataset.focus)}"]:not([type=hidden])`);
  if (sourceIs("yaml") && own?.closest("[data-pane]")) await openView("form");
  form.querySelector("[data-knob-search]").value = "";
  form.querySelector("[data-changed-only]").checked = false;
  refreshFilter();
  const field = form.querySelector(`[name="${CSS.escape(link.dataset.focus)}"]:not([type=hidden])`);
  if (!field) return;
  const section = field.closest("details");
  if (section) section.open = true;
  field.scrollIntoView({ block: "center" });
  field.focus({ preventScroll: true });
});
// --- presets by purpose, and model size x GPUs --------------------------------------------------------
const presets = document.querySelector("[data-presets]");

function openGroup(tab) {
  for (const other of presets.querySelectorAll("[data-preset-tab]")) {
    other.setAttribute("aria-selected", String(other === tab));
    other.tabIndex = other === tab ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = other !== tab;
  }
}

function showAbout(id) {
  for (const about of presets.querySelectorAll(".preset-about")) about.hidden = about.id !== id;
}

if (presets) {
  const tabs = [...presets.querySelectorAll("[data-preset-tab]")];
  const current = presets.querySelector(".preset[aria-current]");
  presets.addEventListener("click", (event) => {
    const tab = event.target.closest("[data-preset-tab]");
    if (tab) openGroup(tab);
    const preset = event.target.closest(".preset");
    const count = Number(form.querySelector("[data-changed-total]").textContent);
    const question = `Change the preset and drop ${count} changed knob${count === 1 ? "" : "s"}?`;
    if (preset && count && !window.confirm(question)) event.preventDefault();
  });
  presets.addEventListener("keydown", (event) => {
    const place = tabs.indexOf(event.target);
    const move = { ArrowRight: 1, ArrowLeft: -1, Home: -place, End: tabs.length - 1 - place }[event.key];
    if (place < 0 || move === undefined) return;
    event.preventDefault();
    const tab = tabs[(place + move + tabs.length) % tabs.length];
    openGroup(tab);
    tab.focus();
  });
  for (const name of ["mouseover", "focusin"]) {
    presets.addEventListener(name, (event) => {
      const preset = event.target.closest(".preset");
      if (preset) showAbout(preset.dataset.about);
    });
  }
  presets.addEventListener("mouseleave", () => current && showAbout(current.dataset.about));
}

async function applyScale(scale) {
  const chosen = ["scale_size", "scale_gpus"].every((name) => form.querySelector(`[name=${name}]:checked`));
  if (!chosen) return;
  const response = await fetch(scale.dataset.url, { method: "POST", body: new FormData(form) });
  const { knobs: html, note } = await response.json();
  const line = scale.querySelector("[data-scale-note]");
  line.textContent = note;
  line.classList.toggle("is-bad", !response.ok);
  if (!response.ok) return;
  document.getElementById("knobs").outerHTML = html;
  form.elements.source.value = "form";
  if (!form.querySelector("[data-pane=yaml]").hidden) {
    await toYaml();
    form.elements.source.value = "yaml";
  }
  refreshMarks();
  refreshFilter();
  checkSoon();
}

form.addEventListener("change", (event) => {
  if (event.target.matches("[name=scale_size], [name=scale_gpus]")) applyScale(event.target.closest("[data-scale]"));
});

showPane(sourceIs("yaml") ? "yaml" : "form");
refreshMarks();
refreshFilter();
if (window.htmx) checkSoon();
else window.addEventListener("load", checkSoon);
