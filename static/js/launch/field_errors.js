// Errors beside the fields of the launch form, and below the YAML text.
import { make } from "../lib/dom.js";
import { fieldOf, form, knobsIn, sectionsOf } from "./knob_fields.js";

// `errors`: path of a field -> sentence.
export function showErrors(errors) {
  for (const section of sectionsOf()) {
    const wrong = knobsIn(section).filter((knob) => showKnobError(knob, errors[knob.dataset.knob] ?? ""));
    section.querySelector("[data-error-count]").hidden = wrong.length === 0;
  }
  for (const line of form.querySelectorAll("[data-error-of]")) {
    const message = errors[line.dataset.errorOf] ?? "";
    line.hidden = !message;
    line.textContent = message;
    form.elements[line.dataset.errorOf].classList.toggle("is-invalid", Boolean(message));
  }
  const isYaml = form.elements.source.value === "yaml";
  form.querySelector("[data-yaml-errors]").replaceChildren(...(isYaml ? Object.entries(errors).map(errorLine) : []));
}

function showKnobError(knob, message) {
  const isWrong = Boolean(message);
  const line = knob.querySelector("[data-error]");
  line.hidden = !isWrong;
  line.querySelector("span").textContent = message;
  knob.classList.toggle("has-error", isWrong);
  fieldOf(knob).classList.toggle("is-invalid", isWrong);
  fieldOf(knob).setAttribute("aria-invalid", String(isWrong));
  return isWrong;
}

function errorLine([path, message]) {
  const line = make("p", "field-error");
  line.append(make("code", "", path), ` ${message}`);
  return line;
}
