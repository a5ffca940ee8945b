// What scripts write as numbers and words.
import assert from "node:assert/strict";
import { test } from "node:test";

import { counted, fixed } from "../../static/js/lib/numbers.js";
import { hint, standing } from "../../static/js/screens/desktop_words.js";

test("half is rounded away from zero on the digits that are written, as number_text does", () => {
  const written = [[0.825, "0.83"], [0.125, "0.13"], [-0.825, "−0.83"], [1204.5, "1,204.50"], [-0.001, "0.00"], [2.675, "2.68"]];
  for (const [value, text] of written) assert.equal(fixed(value), text);
  assert.deepEqual([0.825, -0.5, 0.004, -0.004].map((value) => fixed(value, 2, { signed: true })), ["+0.83", "−0.50", "0.00", "0.00"]);
  assert.equal(fixed(0.5, 0), "1");
});

test("a count has its noun", () => {
  assert.deepEqual([counted(0, "turn"), counted(1, "turn"), counted(1200, "turn"), counted(2, "entry", "entries")], ["0 turns", "1 turn", "1,200 turns", "2 entries"]);
});

const page = (more = {}, state = {}) => ({ line: "live", why: "", state: { status: "acting", hasScreen: true, source: "policy", ...state }, ...more });
const label = (...parts) => standing(page(...parts))[1];
const words = (...parts) => standing(page(...parts))[2];

test("the state of a live desktop is named by what matters most", () => {
  assert.equal(label(), "Live");
  assert.equal(label({ isHeld: true }), "You control");
  assert.equal(label({ isMine: true }), "Pausing the agent");
  assert.equal(label({}, { control: true, controller: "olga" }), "Taken by olga");
  assert.equal(label({ isElsewhere: true, isHeld: true }), "In another tab");
  assert.equal(label({ line: "reconnecting", isHeld: true }), "Reconnecting");
  assert.equal(label({ line: "reconnecting" }, { isFinal: true }), "Ended");
  assert.equal(label({ isDenied: true }, { isFinal: true }), "Not allowed");
});

test("a desktop that cannot be reached says why", () => {
  assert.equal(words({ line: "reconnecting", why: "the host is away" }), "The host is away. It is tried again.");
  assert.equal(words({ line: "reconnecting" }), "The connection broke; nothing is lost.");
});

test("a place in the queue is counted", () => {
  const queued = (numAhead) => words({}, { hasScreen: false, status: "queued", numAhead });
  assert.match(queued(1), /1 trajectory is running/);
  assert.match(queued(3), /3 trajectories are running/);
  assert.equal(queued(0), "A desktop is on its way.");
});

test("an end says its score, and whether the entry waits in the inbox", () => {
  const ended = (state) => words({}, { isFinal: true, status: "finished", ...state });
  assert.equal(ended({ score: 1, source: "human" }), "The evaluator gave 1.00 of 1. It waits in the replay inbox.");
  assert.equal(ended({ score: 0.4, source: "human" }), "The evaluator gave 0.40 of 1.");
  assert.equal(ended({ score: 1, source: "policy" }), "The evaluator gave 1.00 of 1.");
  assert.equal(ended({ status: "errored", errorText: "no screen" }), "no screen");
});

test("the hint names the keys that work now", () => {
  const state = { numTurns: 4 };
  assert.match(hint({ state, isHeld: true, hasFocus: true }), /Shift \+ Escape/);
  assert.match(hint({ state, isHeld: true, hasFocus: false }), /Press f to finish, b to hand it back/);
  assert.match(hint({ state, mayTake: true }), /Press c/);
  assert.equal(hint({ state, mayTake: false }), "");
});
