// An evaluator as a list of checks and back: what is written is what was read.
import assert from "node:assert/strict";
import { test } from "node:test";
import { joined, parted } from "../../static/js/tasks_library/evaluator_parts.js";

const one = { func: "exact_match", result: { type: "vm_file" }, expected: { rules: 1 }, options: {} };

test("one check stands for itself", () => {
  assert.deepEqual(parted(one), [one]);
  assert.deepEqual(joined([one]), one);
});

test("several checks are columns, in their order", () => {
  const two = [one, { func: "is_open", result: { type: "windows" }, expected: {}, options: { any: true } }];
  assert.deepEqual(joined(two).func, ["exact_match", "is_open"]);
  assert.deepEqual(joined(two).options, [{}, { any: true }]);
  assert.deepEqual(parted(joined(two)), two);
});

test("columns that are shorter or missing leave empty parts", () => {
  const found = parted({ func: ["a", "b"], result: [{ type: "vm_file" }] });
  assert.deepEqual(found[1], { func: "b", result: {}, expected: {}, options: {} });
});

test("no check at all is an empty list", () => {
  assert.deepEqual(parted({}), []);
  assert.deepEqual(joined([]).func, []);
});
