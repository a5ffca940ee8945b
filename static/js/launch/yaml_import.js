// A YAML file over what the form says: what it would change in the form is listed before it is taken.
import { make } from "../lib/dom.js";
import { counted } from "../lib/numbers.js";
import { postForm } from "../lib/requests.js";
import { fieldNamed, fieldOf, form, knobsIn, valueOf } from "./knob_fields.js";
import { showKnobs, showText } from "./yaml_view.js";

const dialog = document.getElementById("import-diff");
const find = (name) => dialog.querySelector(`[data-import-${name}]`);

// Resolves when the file was taken or left. A file that is not readable as settings opens as text, with its errors.
export async function importFile(file) {
  const text = await file.text();
  const fields = new FormData(form);
  fields.set("source", "yaml");
  fields.set("yaml", text);
  fields.set("over_form", "1");
  const html = await (await postForm(form.dataset.formUrl, fields)).text();
  const read = new DOMParser().parseFromString(html, "text/html").body;
  if (read.querySelector("#knobs > .notice")) return showText(text);
  const changes = changesIn(read);
  find("name").textContent = file.name;
  find("says").textContent = changes.length
    ? `It changes ${counted(changes.length, "setting")} of this form. What it does not name stays.`
    : "It changes nothing: the form already says so.";
  find("changes").replaceChildren(...changes.map(line));
  find("take").disabled = !changes.length;
  if (await isTaken()) await showKnobs(html);
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

function isTaken() {
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
