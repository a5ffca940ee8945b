// The replay inbox: label with one key, see the next entry at once, let the server confirm behind.
import { bind } from "./lib/keys.js";
import { prefetch, Screen, showWidth } from "./lib/frames.js";
import { drawOverlay } from "./overlay.js";
import { Outbox } from "./outbox.js";
import { drawEntry, drawQueue, drawStrip } from "./curate_view.js";
import * as curation from "./curation.js";
import * as player from "./player.js";

const FEW_LEFT = 20; // rows of the queue; then the next ones are fetched
const OTHER_TURNS_MS = 150; // the label goes out first, then the entry's other screens are fetched
const root = document.getElementById("curate");
const find = (name) => root.querySelector(`[data-${name}]`);
const stored = JSON.parse(document.getElementById("curation-data").textContent);
const parts = Object.fromEntries(
  ["frame", "overlay", "place", "caption", "filmstrip", "queue", "tags", "note", "problem", "session", "done"].map((name) => [name, find(name)]),
);
const main = root.querySelector(".curate-main");
const screen = new Screen(find("image"));
const outbox = new Outbox(root.querySelector("[name=csrfmiddlewaretoken]").value);
const rowIds = () => [...parts.queue.querySelectorAll("[data-entry]")].map((row) => Number(row.dataset.entry));

let state = curation.newCuration({ order: rowIds(), entries: stored.entries, position: stored.start, hasMore: stored.hasMore });
let watch = player.newPlayer({ isFinal: true });
let shownId = null;
let timer = 0;
let laterTimer = 0;
let pressedAt = 0;

// --- drawing ---------------------------------------------------------------------------------------

function show(next) {
  state = next;
  const entry = curation.currentEntry(state);
  const id = curation.currentId(state);
  const isDone = id === null;
  parts.done.hidden = !isDone;
  main.hidden = isDone;
  if (entry?.turns && id !== shownId) {
    shownId = id;
    watch = player.newPlayer({ turns: entry.turns, isFinal: true, endFrame: entry.endFrame });
    watch = player.goTo({ ...watch, speed: 3 }, player.lastPosition(watch));
    drawTurn();
  }
  root.classList.toggle("is-loading", !isDone && !entry?.turns); // nobody labels what they have not seen
  if (entry?.turns) {
    drawEntry(root, entry);
    requestAnimationFrame(() => setTimeout(drawCurrentStrip)); // after the screen, which is what people wait for
  }
  drawQueue(parts.queue, state);
  parts.session.textContent = state.numLabelled ? `${state.numLabelled} labelled in this session` : "";
  ready();
}

function drawCurrentStrip() {
  const entry = curation.currentEntry(state);
  if (!entry?.turns) return;
  drawStrip(parts.filmstrip, entry);
  selectTurn();
}

function selectTurn() {
  for (const cell of parts.filmstrip.children) cell.setAttribute("aria-selected", String(Number(cell.dataset.cell) === watch.position));
}

function drawTurn() {
  const turn = player.currentTurn(watch);
  const id = shownId;
  showWidth(turn?.width);
  if (turn?.width) parts.frame.style.setProperty("--ratio", turn.width / turn.height);
  screen.show(turn?.frame ?? "", () => painted(id));
  drawOverlay(parts.overlay, turn);
  const number = Math.min(watch.position + 1, watch.turns.length);
  parts.place.textContent = turn?.isEnd ? "After the last turn" : `Turn ${number} of ${watch.turns.length}`;
  parts.caption.textContent = turn?.parseError ? "could not be parsed" : turn?.thought || turn?.caption || "";
  root.classList.toggle("is-playing", watch.isPlaying);
  selectTurn();
  clearTimeout(timer);
  if (watch.isPlaying) timer = setTimeout(() => turnTo(player.tick(watch)), player.tickMs(watch));
}

function painted(id) {
  root.dispatchEvent(new CustomEvent("entry:painted", { detail: { id, sinceKeyMs: performance.now() - pressedAt } }));
}

function turnTo(next) {
  watch = next;
  drawTurn();
}

// Keep the next entries and their images at hand: the last frame of each first, then the other turns.
function ready() {
  const soon = state.order.slice(state.position + 1, state.position + 1 + curation.AHEAD);
  const entries = soon.map((id) => state.known.get(id)).filter((entry) => entry?.turns);
  prefetch(entries.map((entry) => entry.endFrame?.frame ?? entry.turns.at(-1)?.frame).filter(Boolean));
  clearTimeout(laterTimer);
  laterTimer = setTimeout(prefetchTurns, OTHER_TURNS_MS);
  if (!outbox.numWaiting) fetchLacking();
}

function prefetchTurns() {
  prefetch((curation.currentEntry(state)?.turns ?? []).slice(-12).map((turn) => turn.frame).filter(Boolean));
}

let isFetching = false;
async function fetchLacking() {
  if (isFetching) return;
  isFetching = true;
  try {
    while (curation.lacking(state).length || wantsRows()) {
      const asked = wanted();
      const response = await fetch(`${root.dataset.entriesUrl}?${root.dataset.query}&${new URLSearchParams(asked)}`);
      if (!response.ok) break;
      const answer = await response.json();
      const found = answer.entries.map((entry) => String(entry.id));
      state = curation.drop(state, asked.ids.split(",").filter((id) => id && !found.includes(id)).map(Number));
      take(answer);
    }
  } catch {
    // offline: the next key asks again
  } finally {
    isFetching = false;
  }
}

const wantsRows = () => state.hasMore && state.order.length - state.position < FEW_LEFT;

function wanted() {
  const more = wantsRows() ? { before: String(Math.min(...state.order)) } : {};
  return { ids: curation.lacking(state).join(","), ...more };
}

function take({ entries = [], rows }) {
  if (rows !== undefined) {
    parts.queue.insertAdjacentHTML("beforeend", rows);
    state = curation.append(state, rowIds(), Boolean(rows));
  }
  show(curation.putEntries(state, entries));
}

// --- labels ----------------------------------------------------------------------------------------

function problem(text) {
  parts.problem.hidden = !text;
  parts.problem.querySelector("span").textContent = text;
}

function count(from, to) {
  if (from === to) return;
  for (const [verdict, delta] of [[from, -1], [to, 1]]) {
    const node = root.querySelector(`[data-count="${verdict}"]`);
    if (node) node.textContent = String(Number(node.textContent) + delta);
  }
}

async function send(change, { isAdvancing = false } = {}) {
  const entry = curation.currentEntry(state);
  if (!stored.mayLabel || !entry?.turns) return;
  if (!curation.isChange(entry, change)) {
    if (isAdvancing) show(curation.move(state, 1));
    return;
  }
  problem("");
  const before = entry.verdict;
  const labelled = curation.label(state, entry.id, change, "you");
  count(before, change.verdict ?? before);
  show(isAdvancing ? curation.move(labelled, 1) : labelled);
  const more = wanted();
  try {
    const url = `/replay/${entry.id}/label/?${root.dataset.query}`;
    const answer = await outbox.post(url, { ...change, expected_verdict: before, need: more.ids, before: more.before });
    take({ entries: [answer.entry, ...answer.entries], rows: answer.rows });
  } catch (refused) {
    rollback(entry.id, refused);
  }
}

// The server said no: the entry is again what it was, or what somebody else made of it.
function rollback(id, refused) {
  const now = state.known.get(id);
  const [reverted] = curation.revert(state, id);
  const theirs = refused.body?.entry;
  const next = theirs ? curation.putEntries(reverted, [theirs]) : reverted;
  count(now.verdict, next.known.get(id).verdict);
  problem(refused.status === 409 ? `${refused.message} Your key was not counted.` : refused.message);
  show(curation.goTo(next, id));
}

async function undo() {
  if (!stored.mayLabel) return;
  problem("");
  const [reverted, item] = curation.revert(state);
  if (item) {
    count(state.known.get(item.id).verdict, item.before.verdict);
    show(curation.goTo(reverted, item.id));
  }
  try {
    const answer = await outbox.post(root.dataset.undoUrl, { whole: !item });
    const labels = answer.labels.filter((label) => state.known.has(label.id) || answer.number === 1);
    if (!item && answer.number > 1) return location.reload();
    state = curation.putEntries(state, labels);
    take({ entries: answer.entries });
    if (!item && answer.entries[0]) comeBack(answer.entries[0].id, answer.row);
  } catch (refused) {
    problem(refused.message);
    if (item) fetchAgain(item.id);
  }
}

// An entry that an undo brought back from outside the queue stands before the current one.
function comeBack(id, row) {
  if (!state.order.includes(id)) {
    const current = parts.queue.querySelector('[aria-selected="true"]');
    if (current) current.insertAdjacentHTML("beforebegin", row);
    else parts.queue.insertAdjacentHTML("beforeend", row);
  }
  show(curation.goTo(state, id));
}

async function fetchAgain(id) {
  const response = await fetch(`${root.dataset.entriesUrl}?ids=${id}`);
  if (response.ok) take(await response.json());
}

const tagList = () => parts.tags.value.split(",").map((tag) => tag.trim().toLowerCase()).filter(Boolean);

function toggleTag(tag) {
  const tags = curation.currentEntry(state)?.tags ?? [];
  send({ tags: tags.includes(tag) ? tags.filter((known) => known !== tag) : [...tags, tag] });
}

// --- keyboard and mouse ----------------------------------------------------------------------------

const verdict = (name) => (event) => {
  pressedAt = event?.timeStamp ?? performance.now();
  send({ verdict: name }, { isAdvancing: true });
};
const actions = {
  back: () => turnTo(player.stepBy(watch, -1)),
  forward: () => turnTo(player.stepBy(watch, 1)),
  play: () => turnTo(player.togglePlay(watch)),
  skip: (event) => {
    pressedAt = event?.timeStamp ?? performance.now();
    show(curation.skip(state));
  },
  undo,
};
const LABEL = "Label";
bind("a", "Accept", verdict("accepted"), LABEL);
bind("r", "Reject", verdict("rejected"), LABEL);
bind("g", "Gold", verdict("gold"), LABEL);
bind("s", "Skip, no verdict", actions.skip, LABEL);
bind("z", "Undo the last label", undo, LABEL);
bind("t", "Tags", () => parts.tags.focus(), LABEL);
bind("n", "Note", () => parts.note.focus(), LABEL);
bind("j", "Next turn", actions.forward, "Watch");
bind("k", "Turn before", actions.back, "Watch");
bind(" ", "Play from the first turn", actions.play, "Watch");
bind("o", "Draw the action or not", () => root.classList.toggle("is-overlay-off"), "Watch");
bind("v", "Open in the viewer", () => find("open").click(), "Watch");
bind("ArrowDown", "Next entry", () => show(curation.move(state, 1)), "Queue");
bind("ArrowUp", "Entry before", () => show(curation.move(state, -1)), "Queue");

parts.tags.addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === "Escape") parts.tags.blur();
});
parts.tags.addEventListener("blur", () => send({ tags: tagList() }));
parts.note.addEventListener("keydown", (event) => {
  if (event.key === "Escape" || (event.key === "Enter" && event.ctrlKey)) parts.note.blur();
});
parts.note.addEventListener("blur", () => send({ note: parts.note.value.trim() }));
root.addEventListener("click", (event) => {
  const { target } = event;
  const button = target.closest("[data-verdict-button]");
  if (button) return verdict(button.dataset.verdictButton)();
  const tag = target.closest("[data-tag]");
  if (tag) return toggleTag(tag.dataset.tag);
  const doing = target.closest("[data-do]");
  if (doing) return actions[doing.dataset.do]?.();
  const row = target.closest("[data-entry]");
  if (row) return show(curation.goTo(state, Number(row.dataset.entry)));
  const cell = target.closest("[data-cell]");
  if (cell) turnTo(player.goTo({ ...watch, isPlaying: false }, Number(cell.dataset.cell)));
});
window.addEventListener("beforeunload", (event) => outbox.numWaiting && event.preventDefault());
show(state);
