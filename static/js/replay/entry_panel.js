// Shows one replay entry's task, verdict, checks, figures, tags and note.
import { make } from "../lib/dom.js";
import { fixed } from "../lib/numbers.js";
import { relative } from "../lib/relative_times.js";

const TONES = { inbox: "info", accepted: "good", gold: "gold", rejected: "bad" };
const WORDS = { inbox: "Inbox", accepted: "Accepted", gold: "Gold", rejected: "Rejected" };

function signed(value) {
  return value === null || value === undefined ? "—" : fixed(value, 2, { signed: true });
}

function checkItem({ tone, text, cluster }) {
  const item = make("li", `tone-${tone}`);
  item.append(make("span", "dot"), cluster ? Object.assign(make("a", "", text), { href: `/replay/list/?cluster=${cluster}` }) : text);
  return item;
}

function labeller({ verdict, labelledBy, labelledAt }) {
  if (!labelledBy || verdict === "inbox") return "";
  const age = labelledAt ? `, ${relative(Math.floor((Date.now() - Date.parse(labelledAt)) / 1000))}` : "";
  return `by ${labelledBy}${age}`;
}

export function showEntry(root, entry) {
  const find = (name) => root.querySelector(`[data-${name}]`);
  const step = entry.step ? `step ${entry.step}` : "";
  const texts = {
    instruction: entry.instruction,
    origin: [`Entry ${entry.id}`, entry.family, entry.experiment, step, entry.source].filter(Boolean).join(" · "),
    "verdict-now": WORDS[entry.verdict],
    labeller: labeller(entry),
    score: entry.score === null || entry.score === undefined ? "—" : fixed(entry.score),
    reward: signed(entry.reward),
    turns: entry.turns.length,
    uses: `${entry.numUses}×`,
  };
  for (const [name, text] of Object.entries(texts)) find(name).textContent = text;
  find("verdict-now").className = `pill tone-${TONES[entry.verdict]}`;
  find("checks").replaceChildren(...entry.checks.map(checkItem));
  find("open").href = `/trajectories/${entry.trajectory}/`;
  for (const [name, value] of [["tags", entry.tags.join(", ")], ["note", entry.note]]) {
    const field = find(name);
    if (document.activeElement !== field) field.value = value;
  }
  for (const chip of root.querySelectorAll("[data-tag]")) chip.classList.toggle("is-on", entry.tags.includes(chip.dataset.tag));
  for (const button of root.querySelectorAll("[data-verdict-button]")) {
    button.classList.toggle("is-current", button.dataset.verdictButton === entry.verdict);
  }
}
