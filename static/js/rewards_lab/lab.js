// The reward lab: whatever is edited is tried at once, and the results follow.
import { postForm, Refused } from "../lib/requests.js";
import { showHtml } from "../lib/server_html.js";

const PAUSE_MS = 250;
const lab = document.querySelector("[data-lab]");
const rows = lab.querySelector("[data-rows]");
const results = lab.querySelector("[data-results]");
const problem = lab.querySelector("[data-problem]");
let running = null;
let timer = 0;

async function tryNow() {
  running?.abort();
  running = new AbortController();
  results.classList.add("is-stale");
  try {
    const answer = await postForm(lab.dataset.try, new FormData(lab), { signal: running.signal });
    showHtml(results, await answer.text());
    results.classList.remove("is-stale");
    problem.hidden = true;
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Refused)) throw error;
    problem.querySelector("[data-problem-text]").textContent = error.message;
    problem.hidden = false;
    results.replaceChildren(); // of another expression
    results.classList.remove("is-stale");
  }
}

function trySoon() {
  clearTimeout(timer);
  timer = setTimeout(tryNow, PAUSE_MS);
}

lab.addEventListener("input", (event) => {
  if (["name", "note", "preset"].includes(event.target.name)) return;
  trySoon();
});

lab.querySelector("[data-preset]").addEventListener("change", () => {
  const query = new URLSearchParams();
  for (const name of ["preset", "slice", "compare"]) query.set(name, lab.elements[name].value);
  location.search = query;
});

lab.addEventListener("click", (event) => {
  if (event.target.closest("[data-add]")) {
    rows.append(lab.querySelector("[data-blank]").content.cloneNode(true));
    rows.lastElementChild.querySelector("input").focus();
  }
  const removed = event.target.closest("[data-remove]");
  if (removed) {
    removed.closest("[data-row]").remove();
    trySoon();
  }
});

tryNow();
