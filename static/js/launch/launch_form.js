// The launch form: what is typed is marked, checked and filtered; YAML both ways; presets; model size and GPUs.
import { Refused } from "../lib/requests.js";
import { clearFilter, filterKnobs } from "./knob_filter.js";
import { fieldNamed, form, markChanges, resetToBaseline } from "./knob_fields.js";
import { startScale } from "./model_scale.js";
import { checkSoon } from "./preflight.js";
import { startPresets } from "./preset_tabs.js";
import { importFile } from "./yaml_import.js";
import { exportFile, isYaml, openView, showPane } from "./yaml_view.js";

form.addEventListener("input", (event) => {
  if (event.target.matches("[data-knob-search], [data-changed-only]")) return filterKnobs();
  if (event.target.dataset.mirror) return; // once it is whole
  markChanges();
  if (event.target.matches("[data-knob] select")) filterKnobs();
  checkSoon();
});
form.addEventListener("change", (event) => {
  const name = event.target.dataset.mirror;
  if (name && fieldNamed(name)) {
    fieldNamed(name).value = event.target.value;
    markChanges();
    return checkSoon();
  }
  if (!event.target.matches("[data-import]") || !event.target.files.length) return;
  convert(importFile(event.target.files[0]));
  event.target.value = "";
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches("input:not([type=checkbox])")) event.preventDefault();
});
form.addEventListener("click", (event) => {
  const tab = event.target.closest("[data-view]");
  if (tab) convert(openView(tab.dataset.view));
  if (event.target.closest("[data-export]")) convert(exportFile());
  const reset = event.target.closest("[data-reset]");
  if (!reset) return;
  resetToBaseline(reset.closest("[data-knob]"));
  markChanges();
  checkSoon();
});

// An error of pre-flight leads to its field.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-focus]");
  if (!link) return;
  event.preventDefault();
  const name = link.dataset.focus;
  if (isYaml() && fieldNamed(name)?.closest("[data-pane]")) await convert(openView("form"));
  clearFilter();
  const field = fieldNamed(name);
  if (!field) return;
  const section = field.closest("details");
  if (section) section.open = true;
  field.scrollIntoView({ block: "center" });
  field.focus({ preventScroll: true });
});

// Says why the server refused to convert; then pre-flight, for what the form holds now.
async function convert(conversion) {
  const line = form.querySelector("[data-conversion-error]");
  line.hidden = true;
  try {
    await conversion;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    line.hidden = false;
    line.textContent = error.message;
  }
  checkSoon();
}

const presets = document.querySelector("[data-presets]");
if (presets) startPresets(presets);
const scale = document.querySelector("[data-scale]");
if (scale) startScale(scale);
showPane(isYaml() ? "yaml" : "form");
markChanges();
filterKnobs();
checkSoon();
