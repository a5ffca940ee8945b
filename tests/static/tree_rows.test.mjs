// Rows of an accessibility tree: search, the widget under a point, the box on the picture, and the words above.
import assert from "node:assert/strict";
import { test } from "node:test";

import { boxPlace, describeTree, matchingRows, readRows, rowAt } from "../../static/js/trajectories/tree_rows.js";

const rows = readRows([
  [0, "frame", "Notes", "", [0, 0, 400, 300], [], ""],
  [1, "push-button", "Save", "", [10, 20, 60, 20], ["focused"], "added"],
  [1, "text", "Body", "Save me later", [10, 60, 300, 200], [], "changed"],
  [1, "label", "Nowhere", "", null, [], ""],
]);
const size = { width: 400, height: 300 };

test("a search finds rows that hold all of its words, in role, name or text", () => {
  assert.deepEqual(matchingRows(rows, ""), [0, 1, 2, 3]);
  assert.deepEqual(matchingRows(rows, "  SAVE "), [1, 2]);
  assert.deepEqual(matchingRows(rows, "text save"), [2]);
  assert.deepEqual(matchingRows(rows, "print"), []);
});

test("changes are the rows that are new or say something else", () => {
  assert.deepEqual(matchingRows(rows, "", { onlyChanges: true }), [1, 2]);
  assert.deepEqual(matchingRows(rows, "body", { onlyChanges: true }), [2]);
});

test("the row under a point is the one with the smallest box", () => {
  assert.equal(rowAt(rows, 12, 22), 1);
  assert.equal(rowAt(rows, 69, 39), 1);
  assert.equal(rowAt(rows, 70, 39), 0);
  assert.equal(rowAt(rows, 20, 70), 2);
  assert.equal(rowAt(rows, 400, 0), -1);
});

test("a box is placed in percent of the screen and cut to it", () => {
  assert.deepEqual(boxPlace([100, 30, 40, 30], size), { left: "25%", top: "10%", width: "10%", height: "10%" });
  assert.deepEqual(boxPlace([-40, 0, 80, 600], size), { left: "0%", top: "0%", width: "10%", height: "100%" });
  assert.equal(boxPlace([400, 0, 10, 10], size), null);
});

test("the words above the rows count widgets, what is left out, and changes", () => {
  const tree = { error: "", numChars: 4200, numLeft: 0, hasBefore: false, removed: [] };
  assert.equal(describeTree(tree, rows, 4), "4 widgets · 4,200 characters");
  assert.equal(describeTree({ ...tree, numLeft: 7 }, rows, 2), "2 of 4 widgets · 4,200 characters · 7 more are left out");
  assert.match(describeTree({ ...tree, hasBefore: true, removed: [["a", "b"]] }, rows, 4), /1 new, 1 changed, 1 gone$/);
  assert.equal(describeTree({ ...tree, error: "no answer" }, [], 0), "no answer");
});
