// Model size and number of GPUs: the server answers the knobs of that layout, the rest as it was typed.
import { postForm, Refused } from "../lib/requests.js";
import { form } from "./knob_fields.js";
import { checkSoon } from "./preflight.js";
import { showKnobs } from "./yaml_view.js";

export function startScale(scale) {
  const note = scale.querySelector("[data-scale-note]");
  let request = null;
  scale.addEventListener("change", async () => {
    if (!["scale_size", "scale_gpus"].every((name) => form.querySelector(`[name=${name}]:checked`))) return;
    // A later choice overtakes the one on its way: else the older answer may come last and stay.
    request?.abort();
    const own = (request = new AbortController());
    let answer;
    try {
      answer = await (await postForm(scale.dataset.url, new FormData(form), own)).json();
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof Refused)) throw error;
      note.textContent = error.message;
      note.classList.add("is-bad");
      return;
    }
    if (own !== request) return;
    note.textContent = answer.note;
    note.classList.remove("is-bad");
    await showKnobs(answer.knobs);
    checkSoon();
  });
}
