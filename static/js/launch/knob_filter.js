// Which knobs of the launch form are shown: those of the search, only changed ones, and of a group of knobs
// only what the chosen provider needs.
import { fieldOf, form, knobsIn, sectionsOf, valueOf } from "./knob_fields.js";

export function filterKnobs() {
  const groups = groupsThatMatter();
  const words = form.querySelector("[data-knob-search]").value.toLowerCase().split(/\s+/).filter(Boolean);
  const changedOnly = form.querySelector("[data-changed-only]").checked;
  let numShown = 0;
  for (const section of sectionsOf()) {
    for (const knob of knobsIn(section)) knob.hidden = !isShown(knob, { groups, words, changedOnly });
    for (const heading of section.querySelectorAll("[data-group]")) {
      heading.hidden = !section.querySelector(`[data-in-group="${heading.dataset.group}"]:not([hidden])`);
    }
    const visible = knobsIn(section).filter((knob) => !knob.hidden).length;
    section.hidden = visible === 0;
    if (visible && (words.length || changedOnly)) section.open = true;
    numShown += visible;
  }
  const empty = form.querySelector("[data-no-match]");
  empty.hidden = numShown > 0;
  empty.textContent = changedOnly && !words.length ? "Nothing differs from the starting point." : "No setting matches.";
}

export function clearFilter() {
  form.querySelector("[data-knob-search]").value = "";
  form.querySelector("[data-changed-only]").checked = false;
  filterKnobs();
}

function isShown(knob, { groups, words, changedOnly }) {
  const isMarked = knob.matches(".is-changed, .has-error");
  if (changedOnly && !isMarked) return false;
  if (!words.every((word) => knob.dataset.words.includes(word))) return false;
  const { inGroup } = knob.dataset;
  return !inGroup || groups.has(inGroup) || words.length > 0 || isMarked;
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
