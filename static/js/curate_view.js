// Draws one replay entry and the marks of the queue; reads state, changes nothing else.
import { frameUrl } from "./lib/frames.js";
import { relative } from "./lib/times.js";

const TONES = { inbox: "info", accepted: "good", gold: "gold", rejected: "bad" };
const WORDS = { inbox: "Inbox", accepted: "Accepted", gold: "Gold", rejected: "Rejected" };
const MARKS = { accepted: "✓", gold: "★", rejected: "✕" };

export function signed(value) {
  if (value === null || value === undefined) return "—";
  const digits = Math.abs(value).toFixed(2);
  return digits === "0.00" ? digits : `${value < 0 ? "−" : "+"}${digits}`;
}

function make(tag, className, text) {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  return node;
}

function check({ tone, text, entry }) {
  const item = make("li", `tone-${tone}`, "");
  item.append(make("span", "dot", ""));
  if (!entry) item.append(text);
  else {
    const link = make("a", "", text);
    link.href = `/replay/${entry}/`;
    item.append(link);
  }
  return item;
}

function cell(turn, place) {
  const node = make("button", `cell is-${turn.state}`, "");
  node.type = "button";
  node.dataset.cell = place;
  const image = make("span", "cell-image", "");
  if (turn.frame) {
    const picture = new Image();
    picture.src = frameUrl(turn.frame, "thumb.jpg");
    picture.alt = "";
    image.append(picture);
  }
  const foot = make("span", "cell-foot", "");
  foot.append(make("b", "", turn.isEnd ? "End" : String(turn.index + 1)), make("span", "", turn.parseError ? "not parsed" : turn.caption ?? ""));
  node.append(image, make("span", "cell-bar", ""), foot);
  return node;
}

export function drawStrip(strip, entry) {
  if (strip.dataset.entry === String(entry.id)) return;
  strip.dataset.entry = entry.id;
  const end = entry.endFrame ? [{ ...entry.endFrame, state: "end", isEnd: true }] : [];
  strip.replaceChildren(...[...entry.turns, ...end].map(cell));
  for (const node of strip.children) node.setAttribute("aria-selected", "false");
  strip.lastElementChild?.setAttribute("aria-selected", "true");
}

export function drawEntry(root, entry) {
  const find = (name) => root.querySelector(`[data-${name}]`);
  find("instruction").textContent = entry.instruction;
  const step = entry.step ? `step ${entry.step}` : "";
  find("origin").textContent = [`Entry ${entry.id}`, entry.family, entry.experiment, step, entry.source].filter(Boolean).join(" · ");
  const pill = find("verdict-now");
  pill.className = `pill tone-${TONES[entry.verdict]}`;
  pill.textContent = WORDS[entry.verdict];
  const age = entry.labelledAt ? relative(Math.floor((Date.now() - Date.parse(entry.labelledAt)) / 1000)) : "";
  find("labeller").textContent = entry.labelledBy && entry.verdict !== "inbox" ? `by ${entry.labelledBy}, ${age}` : "";
  find("checks").replaceChildren(...entry.checks.map(check));
  find("score").textContent = entry.score?.toFixed(2) ?? "—";
  find("reward").textContent = signed(entry.reward);
  find("turns").textContent = entry.turns.length;
  find("uses").textContent = `${entry.numUses}×`;
  find("open").href = `/trajectories/${entry.trajectory}/`;
  const tags = find("tags");
  if (document.activeElement !== tags) tags.value = entry.tags.join(", ");
  const note = find("note");
  if (document.activeElement !== note) note.value = entry.note;
  for (const chip of root.querySelectorAll("[data-tag]")) chip.classList.toggle("is-on", entry.tags.includes(chip.dataset.tag));
  for (const button of root.querySelectorAll("[data-verdict-button]")) {
    button.classList.toggle("is-current", button.dataset.verdictButton === entry.verdict);
  }
}

// Scrolls the queue alone; scrollIntoView would move the whole page on a phone.
function keepInView(queue, row) {
  const top = row.offsetTop - queue.offsetTop;
  if (top < queue.scrollTop) queue.scrollTop = top - 4;
  else if (top + row.offsetHeight > queue.scrollTop + queue.clientHeight) queue.scrollTop = top + row.offsetHeight - queue.clientHeight + 4;
}

export function drawQueue(queue, state) {
  const current = state.order[state.position];
  for (const row of queue.children) {
    const id = Number(row.dataset.entry);
    const entry = state.known.get(id);
    const isCurrent = id === current;
    if (isCurrent !== (row.getAttribute("aria-selected") === "true")) {
      row.setAttribute("aria-selected", String(isCurrent));
      if (isCurrent) keepInView(queue, row);
    }
    const verdict = entry?.verdict ?? row.dataset.verdict;
    row.dataset.verdict = verdict;
    row.classList.toggle("is-skipped", state.skipped.has(id) && verdict === "inbox");
    const mark = row.querySelector(".queue-mark");
    const text = MARKS[verdict] ?? "";
    if (mark.textContent !== text) mark.textContent = text;
  }
}
