// Pre-flight while typing: the panel and the errors beside the fields, of what the form says now.
import { make } from "../lib/dom.js";
import { counted } from "../lib/numbers.js";
import { postForm, Refused } from "../lib/requests.js";
import { showHtml } from "../lib/server_html.js";
import { showErrors } from "./field_errors.js";
import { form } from "./knob_fields.js";

const DEBOUNCE_MS = 350;
const panel = form.querySelector("[data-preflight]");
const button = document.getElementById("launch-button");
let timer = 0;
let request = null;

export function checkSoon() {
  clearTimeout(timer);
  timer = setTimeout(check, DEBOUNCE_MS);
}

// A later check overtakes the one on its way.
async function check() {
  request?.abort();
  const own = (request = new AbortController());
  form.classList.add("is-checking");
  try {
    const response = await postForm(form.dataset.preflightUrl, new FormData(form), own);
    showHtml(panel, await response.text());
    showResult();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Refused)) throw error;
    panel.replaceChildren(make("p", "sub", `${error.message} The next change checks again.`));
    button.disabled = false;
  }
  if (own === request) form.classList.remove("is-checking");
}

// What the last attempt to launch was refused for, as far as it still is so.
function showNotLaunched(number) {
  const notice = form.querySelector("[data-not-launched]");
  if (!notice) return;
  if (number) notice.querySelector("[data-num-errors]").textContent = counted(number, "setting");
  else notice.remove();
}

// Fields to correct do not close the button: sending the form shows them, too.
function showResult() {
  const errors = JSON.parse(document.getElementById("preflight-errors").textContent);
  showErrors(errors);
  showNotLaunched(Object.keys(errors).length);
  button.disabled = document.getElementById("preflight-result").dataset.mayLaunch === "no";
}
