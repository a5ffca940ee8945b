// Times in words, as the template filters write them.
import assert from "node:assert/strict";
import { mock, test } from "node:test";

mock.timers.enable({ apis: ["setInterval"] });
const { duration, relative } = await import("../../static/js/lib/relative_times.js");

test("an age is in its largest unit, rounded down", () => {
  const written = [[-1, "now"], [2, "just now"], [3, "3 s ago"], [59, "59 s ago"], [60, "1 min ago"], [3599, "59 min ago"], [3600, "1 h ago"], [86399, "23 h ago"], [86400, "1 d ago"], [200000, "2 d ago"]];
  for (const [seconds, text] of written) assert.equal(relative(seconds), text);
});

test("a duration keeps its next smaller unit", () => {
  const written = [[-4, "0 s"], [59.4, "59 s"], [59.6, "1 min"], [61, "1 min 1 s"], [120, "2 min"], [3600, "1 h 0 min"], [5400, "1 h 30 min"]];
  for (const [seconds, text] of written) assert.equal(duration(seconds), text);
});
