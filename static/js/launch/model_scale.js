// Model size and number of GPUs: the server answers the knobs of that layout, the rest as it was typed.
import { postForm, Refused } from "../lib/requests.js";
import { form } from "./knob_fields.js";
import { checkSoon } from "./preflight.js";
import { showKnobs } from "./yaml_view.js";

export function startScale(scale) {
  const note = scale.querySelector("[data-scale-note]");
  scale.addEventListener("change", async () => {
    if (!["scale_size", "scale_gpus"].every((name) => form.querySelector(`[name=${name}]:checked`))) return;
    let answer;
    try {
      answer = await (await postForm(scale.dataset.url, new FormData(form))).json();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      note.textContent = error.message;
      note.classList.add("is-bad");
      return;
    }
    note.textContent = answer.note;
    note.classList.remove("is-bad");
    await showKnobs(answer.knobs);
    checkSoon();
  });
}
