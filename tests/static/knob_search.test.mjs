// The order in which the launch form's search shows settings.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fit } from "../../static/js/launch/knob_search.js";

const setting = (path, label, help = "") => ({ path, label, words: `${path} ${label} ${help}` });
const RATE = setting("optimiser.learning_rate", "learning rate", "step of the optimiser");

test("the exact name comes first, then what begins with it, then what has its words", () => {
  const found = [
    RATE,
    setting("optimiser.learning_rate_floor", "learning rate floor"),
    setting("optimiser.muon_learning_rate", "muon learning rate"),
    setting("algorithm.max_staleness", "max staleness", "versions; lower the learning rate with it"),
  ].map((one) => fit(one, "learning rate", false));
  assert.deepEqual(found, [0, 1, 2, 4]);
});

test("what is switched off comes after everything that is on", () => {
  const off = fit(setting("sft.learning_rate", "learning rate"), "learning rate", true);
  assert.ok(off > fit(setting("x.y", "other", "learning and rate"), "learning rate", false));
});

test("a word that is nowhere hides it; a dotted path is exact", () => {
  assert.equal(fit(RATE, "learning speed", false), null);
  assert.equal(fit(RATE, "optimiser.learning_rate", false), 0);
});
