// Which knobs of the launch form are shown, and in which order: those of the search, the best first and what is
// switched off last; only changed ones; and of a group of knobs only what the chosen provider needs.
import { fieldOf, form, knobsIn, sectionsOf, valueOf } from "./knob_fields.js";
import { fit } from "./knob_search.js";

const WORST = 99;

export function filterKnobs() {
  const groups = groupsThatMatter();
  const query = form.querySelector("[data-knob-search]").value.trim().toLowerCase();
  const changedOnly = form.querySelector("[data-changed-only]").checked;
  let numShown = 0;
  for (const section of sectionsOf()) {
    let best = WORST;
    for (const knob of knobsIn(section)) {
      const isOff = isSwitchedOff(knob) || !isInUse(knob, groups);
      const rank = rankOf(knob, { query, isOff, changedOnly });
      knob.hidden = rank === null;
      knob.classList.toggle("is-off", isOff);
      knob.style.order = query ? rank : "";
      best = Math.min(best, rank ?? WORST);
    }
    for (const heading of section.querySelectorAll("[data-group]")) {
      heading.hidden = Boolean(query) || !section.querySelector(`[data-in-group="${heading.dataset.group}"]:not([hidden])`);
    }
    const visible = knobsIn(section).filter((knob) => !knob.hidden).length;
    section.hidden = visible === 0;
    section.style.order = query ? best : "";
    if (visible && (query || changedOnly)) section.open = true;
    numShown += visible;
  }
  const empty = form.querySelector("[data-no-match]");
  empty.hidden = numShown > 0;
  empty.textContent = changedOnly && !query ? "Nothing differs from the starting point." : "No setting matches.";
}

export function clearFilter() {
  form.querySelector("[data-knob-search]").value = "";
  form.querySelector("[data-changed-only]").checked = false;
  filterKnobs();
}

// Null hides it.
function rankOf(knob, { query, isOff, changedOnly }) {
  const isMarked = knob.matches(".is-changed, .has-error");
  if (changedOnly && !isMarked) return null;
  if (!query) return isOff && knob.dataset.inGroup && !isMarked ? null : 0;
  const label = knob.querySelector("label").textContent.toLowerCase();
  return fit({ label, path: knob.dataset.knob, words: knob.dataset.words }, query, isOff);
}

function isInUse(knob, groups) {
  const { inGroup } = knob.dataset;
  return !inGroup || groups.has(inGroup);
}

// Its section has a switch of its own, which is off.
function isSwitchedOff(knob) {
  const path = `${knob.dataset.knob.split(".")[0]}.enabled`;
  const own = knob.dataset.knob !== path && form.querySelector(`[data-knob="${path}"]`);
  return Boolean(own) && valueOf(fieldOf(own)) === "false";
}

// A group of knobs matters when its provider is chosen, or when another group that matters chooses it.
function groupsThatMatter() {
  const headings = [...form.querySelectorAll("[data-group]")];
  const knobAt = (path) => form.querySelector(`[data-knob="${path}"]`);
  const isMet = (condition, seen) => {
    const [path, value] = condition.split("=");
    if (valueOf(fieldOf(knobAt(path))) !== value) return false;
    const chooser = headings.find(({ dataset }) => dataset.group === knobAt(path).dataset.inGroup);
    return !chooser || (!seen.includes(chooser) && matters(chooser, seen));
  };
  const matters = (heading, seen = []) => {
    const { when } = heading.dataset;
    return !when || when.split(" ").some((condition) => isMet(condition, [...seen, heading]));
  };
  return new Set(headings.filter((heading) => matters(heading)).map(({ dataset }) => dataset.group));
}
