// The state of a labelling session: its queue, its place, and what is taken back.
import assert from "node:assert/strict";
import { test } from "node:test";

import * as labelling from "../../static/js/replay/labelling_state.js";

const entry = (id, more = {}) => ({ id, turns: [{ frame: `f${id}` }], verdict: "inbox", tags: [], note: "", labelledBy: "", labelledAt: "", ...more });
const session = (ids = [9, 8, 7, 6, 5], more = {}) => labelling.newLabelling({ order: ids, entries: ids.map((id) => entry(id)), ...more });
const verdictOf = (state, id) => state.known.get(id).verdict;

test("the current entry is the one at the place; after the last there is none", () => {
  assert.equal(labelling.currentId(session()), 9);
  assert.equal(labelling.currentEntry(session([9, 8], { position: 1 })).id, 8);
  const after = labelling.move(session([9, 8]), 7);
  assert.deepEqual([after.position, labelling.currentId(after), labelling.currentEntry(after)], [2, null, null]);
  assert.equal(labelling.move(session(), -1).position, 0);
});

test("new rows go to the end, each once", () => {
  const state = labelling.append(session([3, 2]), [2, 1], true);
  assert.deepEqual([state.order, state.hasMore], [[3, 2, 1], true]);
});

test("the current entry and the three after it are lacking until their turns are here", () => {
  const state = labelling.newLabelling({ order: [9, 8, 7, 6, 5, 4], entries: [entry(8), { id: 7, verdict: "inbox" }], position: 1 });
  assert.deepEqual(labelling.lacking(state), [7, 6, 5]);
  assert.deepEqual(labelling.lacking(labelling.putEntries(state, [entry(7), entry(6), entry(5)])), []);
});

test("an update keeps what it does not say", () => {
  const state = labelling.putEntries(session(), [{ id: 9, note: "x" }]);
  assert.deepEqual(state.known.get(9), entry(9, { note: "x" }));
});

test("what is gone from the server leaves the queue", () => {
  const state = session([3, 2, 1]);
  assert.deepEqual(labelling.drop(state, [2]).order, [3, 1]);
  assert.equal(labelling.drop(state, []), state);
});

test("an entry of the queue is gone to; another is put at the place", () => {
  assert.equal(labelling.goTo(session([3, 2, 1]), 1).position, 2);
  const state = labelling.goTo(session([3, 2, 1], { position: 1 }), 7);
  assert.deepEqual([state.order, labelling.currentId(state)], [[3, 7, 2, 1], 7]);
});

test("a change is one by value", () => {
  const labelled = entry(1, { verdict: "accepted", tags: ["a"] });
  assert.equal(labelling.isChange(labelled, { verdict: "accepted", tags: ["a"] }), false);
  assert.equal(labelling.isChange(labelled, { tags: ["a", "b"] }), true);
});

test("a label shows at once with its person and time", () => {
  const before = Date.now();
  const state = labelling.label(session(), 9, { verdict: "gold" }, "olga");
  const { verdict, labelledBy, labelledAt, note } = state.known.get(9);
  assert.deepEqual([verdict, labelledBy, note], ["gold", "olga", ""]);
  assert.ok(Date.parse(labelledAt) >= before && Date.parse(labelledAt) <= Date.now());
});

test("verdicts are counted as labels, notes and tags are not", () => {
  const first = labelling.label(session(), 9, { verdict: "gold" }, "olga");
  const second = labelling.label(first, 9, { note: "well done" }, "olga");
  assert.deepEqual([first.numLabelled, second.numLabelled], [1, 1]);
  const [third] = labelling.revert(second);
  const [fourth] = labelling.revert(third);
  assert.deepEqual([third.numLabelled, fourth.numLabelled], [1, 0]);
});

test("undo takes back the newest first, to all that stood before", () => {
  const start = session([9, 8]);
  const first = labelling.label(start, 9, { verdict: "accepted", tags: ["a"] }, "olga");
  const second = labelling.label(first, 8, { verdict: "rejected" }, "olga");
  const [third, taken] = labelling.revert(second);
  assert.deepEqual([taken.id, verdictOf(third, 8), verdictOf(third, 9)], [8, "inbox", "accepted"]);
  const [fourth] = labelling.revert(third);
  assert.deepEqual(fourth.known.get(9), start.known.get(9));
  assert.deepEqual(labelling.revert(fourth), [fourth, null]);
});

test("a refused label is taken back, and later ones of other entries stay", () => {
  const first = labelling.label(session([9, 8]), 9, { verdict: "accepted" }, "olga");
  const second = labelling.label(first, 8, { verdict: "gold" }, "olga");
  const [third, taken] = labelling.revert(second, 9);
  assert.deepEqual([taken.id, verdictOf(third, 9), verdictOf(third, 8)], [9, "inbox", "gold"]);
  assert.deepEqual(third.history.map(({ id }) => id), [8]);
  assert.deepEqual(labelling.revert(third, 9), [third, null]);
});

test("of two labels of one entry the later is refused first", () => {
  const first = labelling.label(session(), 9, { verdict: "accepted" }, "olga");
  const second = labelling.label(first, 9, { verdict: "gold" }, "olga");
  assert.equal(verdictOf(labelling.revert(second, 9)[0], 9), "accepted");
});

test("a skipped entry is marked, and the next one shown", () => {
  const state = labelling.skip(session([3, 2]));
  assert.deepEqual([...state.skipped, labelling.currentId(state)], [3, 2]);
});

test("no function changes the state that it is given", () => {
  const state = labelling.label(session(), 9, { verdict: "gold" }, "olga");
  const before = structuredClone(state);
  labelling.label(state, 8, { verdict: "gold" }, "olga");
  labelling.revert(state);
  labelling.goTo(state, 77);
  labelling.skip(state);
  labelling.drop(state, [9]);
  assert.deepEqual(state, before);
});
