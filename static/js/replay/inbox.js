// The replay inbox: label with one key, see the next entry at once, let the server confirm behind.
import { Refused } from "../lib/requests.js";
import { showEntry } from "./entry_panel.js";
import { EntryLoader, wanted } from "./entry_loader.js";
import { EntryPlayer } from "./entry_player.js";
import { startControls } from "./inbox_controls.js";
import { countMoved } from "./inbox_counts.js";
import { InboxQueue } from "./inbox_queue.js";
import { LabelOutbox } from "./label_outbox.js";
import * as labelling from "./labelling_state.js";

const root = document.getElementById("curate");
const find = (name) => root.querySelector(`[data-${name}]`);
const stored = JSON.parse(document.getElementById("curation-data").textContent);
const queue = new InboxQueue(find("queue"));
const outbox = new LabelOutbox();
const player = new EntryPlayer(root, (id) => {
  root.dispatchEvent(new CustomEvent("entry:painted", { detail: { id, sinceKeyMs: performance.now() - pressedAtMs } }));
});
const loader = new EntryLoader({
  url: root.dataset.entriesUrl,
  query: root.dataset.query,
  read: () => state,
  take: (answer, gone) => {
    state = labelling.drop(state, gone);
    take(answer);
  },
});
let state = labelling.newLabelling({ order: queue.ids(), entries: stored.entries, position: stored.start, hasMore: stored.hasMore });
let drawnId = null;
let pressedAtMs = 0;
let offered = ""; // entry and verdict whose trim was offered: the next press of the key takes it

function show(next) {
  state = next;
  const entry = labelling.currentEntry(state);
  if (!offered.startsWith(`${entry?.id} `)) offer("");
  const isDone = labelling.currentId(state) === null;
  find("done").hidden = !isDone;
  root.querySelector(".curate-main").hidden = isDone;
  root.classList.toggle("is-loading", !isDone && !entry?.turns); // an entry is labelled only once it was seen
  if (entry?.turns) {
    player.show(entry);
    showEntry(root, entry);
    showAlike(entry.id);
  }
  queue.mark(state);
  find("session").textContent = state.numLabelled ? `${state.numLabelled} labelled in this session` : "";
  loader.prefetchScreens();
  if (!outbox.numWaiting) loader.fetchLacking();
}

function take({ entries = [], rows }) {
  if (rows !== undefined) {
    queue.append(rows);
    state = labelling.append(state, queue.ids(), Boolean(rows));
  }
  show(labelling.putEntries(state, entries));
}

function showProblem(text) {
  find("problem").hidden = !text;
  find("problem").querySelector("span").textContent = text;
}

function showAlike(id) {
  const number = queue.numAlike(id);
  find("alike-box").hidden = !number;
  find("alike-number").textContent = number + 1;
  if (drawnId !== id) find("alike-all").checked = true;
  drawnId = id;
}

// --- labels ----------------------------------------------------------------------------------------

// An entry with turns that did nothing is accepted without them, once a second press says so.
function accept(verdict) {
  const entry = labelling.currentEntry(state);
  const isFlawed = verdict !== "rejected" && entry?.trimmedTo != null && entry.verdict !== verdict;
  if (!isFlawed) return send({ verdict }, { isAdvancing: true });
  if (entry.trimmedTo && offered === `${entry.id} ${verdict}`) return send({ verdict }, { isAdvancing: true, trim: true });
  offered = `${entry.id} ${verdict}`;
  const [key, word] = verdict === "gold" ? ["G", "make it gold"] : ["A", "accept it"];
  offer(entry.trimmedTo ? `Turns of it were unparsable or refused. ${key} again to ${word} without them, up to turn ${entry.trimmedTo}.` : "No turn of it was executed: reject it.");
}

function offer(text) {
  find("trim").hidden = !text;
  find("trim").querySelector("span").textContent = text;
}

async function send(change, { isAdvancing = false, trim = false } = {}) {
  const entry = labelling.currentEntry(state);
  if (!stored.mayLabel || !entry?.turns) return;
  if (!labelling.isChange(entry, change)) {
    if (isAdvancing) show(labelling.move(state, 1));
    return;
  }
  showProblem("");
  const before = entry.verdict;
  const alike = Boolean(change.verdict) && queue.numAlike(entry.id) > 0 && find("alike-all").checked;
  const labelled = labelling.label(state, entry.id, change, "you");
  countMoved(before, change.verdict ?? before, 1);
  show(isAdvancing ? labelling.move(labelled, 1) : labelled);
  const more = wanted(state);
  try {
    const url = `/replay/${entry.id}/label/?${root.dataset.query}`;
    const answer = await outbox.post(url, { ...change, trim, alike, expected_verdict: before, need: more.ids, before: more.before });
    countMoved(before, change.verdict ?? before, answer.number - 1);
    take({ entries: [answer.entry, ...answer.entries], rows: answer.rows });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    rollBack(entry.id, error);
  }
}

// The entry is again what it was, or what another person made of it.
function rollBack(id, refused) {
  const now = state.known.get(id);
  const [reverted] = labelling.revert(state, id);
  const theirs = refused.body.entry;
  const next = theirs ? labelling.putEntries(reverted, [theirs]) : reverted;
  countMoved(now.verdict, next.known.get(id).verdict, 1);
  showProblem(`${refused.message} ${refused.status === 409 ? "Your key was not counted." : "This label was not stored."}`);
  show(labelling.goTo(next, id));
}

async function undo() {
  if (!stored.mayLabel) return;
  showProblem("");
  const [reverted, item] = labelling.revert(state);
  const verdict = item && state.known.get(item.id).verdict;
  if (item) {
    countMoved(verdict, item.before.verdict, 1);
    show(labelling.goTo(reverted, item.id));
  }
  try {
    const answer = await outbox.post(root.dataset.undoUrl, { whole: !item });
    const labels = answer.labels.filter((label) => state.known.has(label.id) || answer.number === 1);
    if (!item && answer.number > 1) return location.reload();
    if (item) countMoved(verdict, item.before.verdict, answer.number - 1);
    state = labelling.putEntries(state, labels);
    take({ entries: answer.entries });
    if (!item && answer.entries[0]) comeBack(answer.entries[0].id, answer.row);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    showProblem(error.message);
    if (item) await loader.fetchAgain(item.id);
  }
}

// An entry that an undo brought back from outside the queue stands before the current one.
function comeBack(id, row) {
  if (!state.order.includes(id)) queue.insertBeforeSelected(row);
  show(labelling.goTo(state, id));
}

const pressed = (event) => (pressedAtMs = event?.timeStamp ?? performance.now());

startControls(root, player, {
  verdict: (verdict, event) => {
    pressed(event);
    accept(verdict);
  },
  skip: (event) => {
    pressed(event);
    show(labelling.skip(state));
  },
  undo,
  toggleTag: (tag) => {
    const tags = labelling.currentEntry(state)?.tags ?? [];
    send({ tags: tags.includes(tag) ? tags.filter((known) => known !== tag) : [...tags, tag] });
  },
  saveTags: (tags) => send({ tags }),
  saveNote: (note) => send({ note }),
  move: (delta) => show(labelling.move(state, delta)),
  goTo: (id) => show(labelling.goTo(state, id)),
});
window.addEventListener("beforeunload", (event) => outbox.numWaiting && event.preventDefault());
show(state);
