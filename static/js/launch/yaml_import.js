// A YAML file over what the form says: what it would change in the form is listed before it is taken.
import { make } from "../lib/dom.js";
import { counted } from "../lib/numbers.js";
import { postForm } from "../lib/requests.js";
import { fieldNamed, fieldOf, form, knobsIn, valueOf } from "./knob_fields.js";
import { isYaml, showKnobs, showText } from "./yaml_view.js";

const dialog = document.getElementById("import-diff");
const find = (name) => dialog.querySelector(`[data-import-${name}]`);

// Resolves when the file was taken or left. A file that is not readable as settings opens as text, with its errors;
// what was changed in the form would not be in it, so that is asked first.
export async function importFile(file) {
  const text = await file.text();
  const fields = new FormData(form);
  fields.set("source", "yaml");
  fields.set("yaml", text);
  fields.set("over_form", "1");
  const html = await (await postForm(form.dataset.formUrl, fields)).text();
  const read = new DOMParser().parseFromString(html, "text/html").body;
  find("name").textContent = file.name;
  if (read.querySelector("#knobs > .notice")) return openAsText(text);
  const changes = changesIn(read);
  const says = changes.length
    ? `It changes ${counted(changes.length, "setting")} of this form. What it does not name stays.`
    : "It changes nothing: the form already says so.";
  if (await isTaken(says, changes, "Take these settings")) await showKnobs(html);
}

async function openAsText(text) {
  const lost = isYaml() ? [] : changedHere();
  const says = "It cannot be read as settings. As a text it replaces this form, where you changed:";
  if (!lost.length || (await isTaken(says, lost, "Open as text"))) showText(text);
}

// What the form says otherwise than its preset.
function changedHere() {
  return knobsIn()
    .filter((knob) => knob.classList.contains("is-changed"))
    .map((knob) => ({ path: knob.dataset.knob, now: knob.dataset.baseline, next: valueOf(fieldOf(knob)) }));
}

function changesIn(read) {
  return knobsIn(read)
    .map((knob) => ({ path: knob.dataset.knob, now: fieldNamed(knob.dataset.knob), next: valueOf(fieldOf(knob)) }))
    .filter(({ now, next }) => now && valueOf(now) !== next)
    .map(({ path, now, next }) => ({ path, now: valueOf(now), next }));
}

function line({ path, now, next }) {
  const row = make("li");
  row.append(make("code", "", path), " ", make("del", "", now || "empty"), " → ", make("strong", "", next || "empty"));
  return row;
}

// True when the button `label` was pressed under what the dialog says.
function isTaken(says, changes, label) {
  find("says").textContent = says;
  find("changes").replaceChildren(...changes.map(line));
  find("take").textContent = label;
  find("take").disabled = !changes.length;
  dialog.showModal();
  return new Promise((resolve) => {
    const take = find("take");
    const onTake = () => dialog.close("take");
    take.addEventListener("click", onTake);
    dialog.addEventListener(
      "close",
      () => {
        take.removeEventListener("click", onTake);
        resolve(dialog.returnValue === "take");
        dialog.returnValue = "";
      },
      { once: true },
    );
  });
}
