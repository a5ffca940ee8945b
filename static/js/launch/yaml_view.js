// The launch form as YAML and back, as a text beside the fields and as a file.
import { postForm } from "../lib/requests.js";
import { showHtml } from "../lib/server_html.js";
import { filterKnobs } from "./knob_filter.js";
import { form, markChanges } from "./knob_fields.js";

const textarea = form.querySelector("textarea.yaml");

export const isYaml = () => form.elements.source.value === "yaml";

export function showPane(name) {
  for (const pane of form.querySelectorAll("[data-pane]")) pane.hidden = pane.dataset.pane !== name;
  for (const tab of form.querySelectorAll("[data-view]")) tab.setAttribute("aria-selected", String(tab.dataset.view === name));
  for (const tool of form.querySelectorAll("[data-only]")) tool.hidden = tool.dataset.only !== name;
}

// Opens "form" or "yaml"; what was typed in the other one goes along. A syntax error or an unknown key cannot
// become fields: then the text stays open, which is what would be sent, and nothing of it is lost.
export async function openView(name) {
  if (name === "yaml" && !isYaml()) await toYaml();
  if (name === "form" && isYaml() && !(await toForm())) return;
  showPane(name);
}

// Fields from the server; the source of truth is the form again.
export async function showKnobs(html) {
  showHtml(form.querySelector("[data-pane=form]"), html, { keepsInput: false });
  form.elements.source.value = "form";
  markChanges();
  filterKnobs();
  if (!form.querySelector("[data-pane=yaml]").hidden) await toYaml();
}

async function toYaml() {
  textarea.value = await yamlOfForm();
  form.elements.source.value = "yaml";
}

async function yamlOfForm() {
  return (await (await postForm(form.dataset.yamlUrl, new FormData(form))).json()).yaml;
}

// False when the text holds what no field shows.
async function toForm() {
  const html = await (await postForm(form.dataset.formUrl, new FormData(form))).text();
  showHtml(form.querySelector("[data-pane=form]"), html, { keepsInput: false });
  markChanges();
  filterKnobs();
  const isWhole = !form.querySelector("#knobs > .notice");
  if (isWhole) form.elements.source.value = "form";
  else showPane("yaml");
  return isWhole;
}

// A text that cannot become fields stays a text, with its errors beside it.
export function showText(text) {
  textarea.value = text;
  form.elements.source.value = "yaml";
  showPane("yaml");
}

export async function exportFile() {
  const text = isYaml() ? textarea.value : await yamlOfForm();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
  const name = form.elements.experiment_name.value.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-");
  link.download = `${name || "experiment"}.yaml`;
  link.click();
  URL.revokeObjectURL(link.href);
}
