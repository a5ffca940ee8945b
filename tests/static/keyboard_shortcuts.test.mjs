// Keys: one or two in a row, not while a person types.
import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { Field, press } from "./browser_stand_ins.mjs";

const { bind } = await import("../../static/js/lib/keyboard_shortcuts.js");
const ran = [];
const bindAll = (...keys) => keys.forEach((key) => bind(key, key, () => ran.push(key)));

beforeEach(() => {
  ran.length = 0;
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
});

test("a bound key runs and is taken from the page; another is left to it", () => {
  bindAll("j");
  assert.deepEqual([press("j").defaultPrevented, press("x").defaultPrevented, ran], [true, false, ["j"]]);
});

test("Shift names keys that are no letters; a letter already says it", () => {
  bindAll("Shift+ArrowLeft", "ArrowLeft", "J");
  press("ArrowLeft", { shiftKey: true });
  press("ArrowLeft");
  press("J", { shiftKey: true });
  assert.deepEqual(ran, ["Shift+ArrowLeft", "ArrowLeft", "J"]);
});

test("two keys in a row run together, within their time only", () => {
  bindAll("g e", "e");
  press("g");
  press("e");
  press("g");
  mock.timers.tick(1000);
  press("e");
  assert.deepEqual(ran, ["g e", "e"]);
});

test("a wrong second key ends the row", () => {
  bindAll("g e", "e");
  press("g");
  press("x");
  press("e");
  assert.deepEqual(ran, ["e"]);
});

test("keys of the browser and of a field are not ours", () => {
  bindAll("k");
  for (const name of ["ctrlKey", "metaKey", "altKey"]) press("k", { [name]: true });
  press("k", {}, new Field(true));
  assert.deepEqual(ran, []);
  press("k", {}, new Field(false));
  assert.deepEqual(ran, ["k"]);
});

test("the newest binding of a key counts", () => {
  bind("m", "old", () => ran.push("old"));
  bind("m", "new", () => ran.push("new"));
  press("m");
  assert.deepEqual(ran, ["new"]);
});
