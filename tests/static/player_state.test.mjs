// The player's state: a position among turns that come while it is watched.
import assert from "node:assert/strict";
import { test } from "node:test";

import * as player from "../../static/js/trajectories/player_state.js";

const turns = (number) => Array.from({ length: number }, (_, index) => ({ index, frame: `f${index}` }));
const live = (number) => player.newPlayer({ turns: turns(number), isFinal: false });
const stored = (number, more = {}) => player.newPlayer({ turns: turns(number), isFinal: true, ...more });
const place = ({ position, isFollowing, isPlaying }) => ({ position, isFollowing, isPlaying });
const end = { frame: "end" };

test("a stored one starts at its first turn, a running one at its newest", () => {
  assert.deepEqual(place(stored(5)), { position: 0, isFollowing: false, isPlaying: false });
  assert.deepEqual(place(live(5)), { position: 4, isFollowing: true, isPlaying: false });
  assert.equal(live(0).position, 0);
});

test("turns are sorted by index, and those of the caller stay as they are", () => {
  const given = turns(3).reverse();
  const state = player.newPlayer({ turns: given, isFinal: true });
  assert.deepEqual(state.turns.map(({ index }) => index), [0, 1, 2]);
  assert.deepEqual(given.map(({ index }) => index), [2, 1, 0]);
});

test("a named position is taken within the turns, and is not followed away", () => {
  const at = (position) => place(player.newPlayer({ turns: turns(4), position }));
  assert.deepEqual(at(2), { position: 2, isFollowing: false, isPlaying: false });
  assert.equal(at(-3).position, 0);
  assert.deepEqual(at(99), { position: 3, isFollowing: false, isPlaying: false });
});

test("brief turns have a place, a frame and a state, and blanks for what is fetched later", () => {
  const found = player.briefTurns({ first: 7, frames: "aa - cc", states: "ok ok bad" }, { width: 64, height: 48 });
  assert.deepEqual(found.map(({ index, frame, state }) => [index, frame, state]), [[7, "aa", "ok"], [8, "", "ok"], [9, "cc", "bad"]]);
  assert.deepEqual([found[0].width, found[0].height, found[0].action, found[0].keys], [64, 48, null, []]);
  assert.deepEqual(player.briefTurns({ first: 0, frames: "", states: "" }), []);
  assert.deepEqual(player.briefTurns(null), []);
});

test("steps stop at both ends and end playing", () => {
  assert.equal(player.stepBy(stored(3), -5).position, 0);
  assert.equal(player.stepBy(stored(3), 9).position, 2);
  assert.equal(player.stepBy({ ...stored(3), isPlaying: true }, 1).isPlaying, false);
});

test("a new turn moves a follower and leaves a scrubber alone", () => {
  assert.equal(player.putTurn(live(2), { index: 2 }).position, 2);
  assert.deepEqual(place(player.putTurn(player.goTo(live(3), 0), { index: 3 })), { position: 0, isFollowing: false, isPlaying: false });
});

test("a turn seen twice is one turn; a late one finds its place; an update keeps what it does not say", () => {
  assert.equal(player.putTurn(player.putTurn(live(2), { index: 2 }), { index: 2 }).turns.length, 3);
  const late = player.putTurn(player.putTurn(live(1), { index: 2 }), { index: 1 });
  assert.deepEqual(late.turns.map(({ index }) => index), [0, 1, 2]);
  assert.deepEqual(player.putTurn(live(2), { index: 1, caption: "x" }).turns[1], { index: 1, frame: "f1", caption: "x" });
});

test("no function changes the state that it is given", () => {
  const state = live(2);
  const before = structuredClone(state);
  player.putTurn(state, { index: 1, caption: "x" });
  player.putTurn(state, { index: 9 });
  player.goTo(state, 0);
  player.finish(state, end);
  player.togglePlay(state);
  assert.deepEqual(state, before);
});

test("scrubbing away leaves live mode; the newest turn keeps it; jumping comes back", () => {
  assert.equal(player.goTo(live(3), 0).isFollowing, false);
  assert.equal(player.goTo(live(3), 2).isFollowing, true);
  const away = { ...player.goTo(live(3), 0), isPlaying: true };
  assert.deepEqual(place(player.jumpToLive(away)), { position: 2, isFollowing: true, isPlaying: false });
  assert.equal(player.jumpToLive(stored(3)).isFollowing, false);
});

test("the screen after the last action is one place more", () => {
  const state = player.stepBy(stored(2, { endFrame: end }), 9);
  assert.deepEqual(player.currentTurn(state), { frame: "end", index: 2, isEnd: true });
  assert.equal(player.currentTurn(stored(2)).frame, "f0");
  assert.equal(player.currentTurn(live(0)), null);
});

test("finishing brings a follower to the end, and leaves a scrubber where it is", () => {
  assert.deepEqual(place(player.finish(live(2), end)), { position: 2, isFollowing: false, isPlaying: false });
  assert.equal(player.finish(player.goTo(live(3), 1), end).position, 1);
  assert.equal(player.finish(player.finish(live(2), end), null).endFrame, end);
});

test("playing goes turn by turn, stops at the end and starts over from there", () => {
  let state = player.togglePlay(stored(3));
  const seen = [];
  while (state.isPlaying && seen.length < 9) {
    seen.push(state.position);
    state = player.tick(state);
  }
  assert.deepEqual(seen, [0, 1, 2]);
  assert.deepEqual(place(player.togglePlay(state)), { position: 0, isFollowing: false, isPlaying: true });
  assert.equal(player.togglePlay(player.togglePlay(state)).isPlaying, false);
  assert.equal(player.tick(stored(3)).position, 0);
});

test("playing to the end of a running one becomes live", () => {
  const state = { ...player.togglePlay(player.goTo(live(2), 0)), position: 1 };
  assert.deepEqual(place(player.tick(state)), { position: 1, isFollowing: true, isPlaying: false });
});

test("the speed sets the time of a tick; an unknown one changes nothing", () => {
  assert.deepEqual([1, 2, 3, 4].map((speed) => player.tickMs(player.setSpeed(stored(1), speed))), [1000, 500, 250, 125]);
  assert.equal(player.setSpeed(stored(1), 9).speed, 2);
});

test("nearest frames are fetched first, each once, the end's among them", () => {
  assert.deepEqual(player.framesAround(player.goTo(stored(9), 4), 2), ["f4", "f5", "f3", "f6", "f2"]);
  assert.deepEqual(player.framesAround(player.goTo(stored(2, { endFrame: end }), 1), 3), ["f1", "end", "f0"]);
  const same = player.newPlayer({ turns: turns(3).map((turn) => ({ ...turn, frame: "f" })), isFinal: true });
  assert.deepEqual(player.framesAround(same), ["f"]);
});
