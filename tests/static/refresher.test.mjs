// Requests that follow what happens: soon, never twice at once, again after a refusal.
import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { document, location, settle } from "./browser_stand_ins.mjs";

const { Refresher } = await import("../../static/js/lib/refresher.js");
const { Refused } = await import("../../static/js/lib/requests.js");

let now = 0;
mock.method(performance, "now", () => now);

async function pass(ms) {
  now += ms;
  mock.timers.tick(ms);
  await settle();
}

beforeEach(() => {
  now = 0;
  document.hidden = false;
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
});

test("the first runs at once, those within the pause together at its end", async () => {
  const run = mock.fn();
  const refresher = new Refresher(run, { minMs: 800 });
  refresher.soon();
  await pass(1);
  assert.equal(run.mock.callCount(), 1);
  for (let i = 0; i < 5; i += 1) refresher.soon();
  await pass(798);
  assert.equal(run.mock.callCount(), 1);
  await pass(2);
  assert.equal(run.mock.callCount(), 2);
  await pass(5000);
  assert.equal(run.mock.callCount(), 2);
});

test("what is wanted while a request is under way runs once after it", async () => {
  let finish;
  const run = mock.fn(() => new Promise((resolve) => (finish = resolve)));
  const refresher = new Refresher(run, { minMs: 100 });
  refresher.soon();
  await pass(1);
  refresher.soon();
  refresher.soon();
  await pass(1000);
  assert.equal(run.mock.callCount(), 1, "never twice at once");
  finish();
  await settle();
  await pass(100);
  assert.equal(run.mock.callCount(), 2);
  finish();
  await settle();
  await pass(1000);
  assert.equal(run.mock.callCount(), 2);
});

test("a hidden tab waits until it is seen", async () => {
  const run = mock.fn();
  const refresher = new Refresher(run);
  document.hidden = true;
  refresher.soon();
  await pass(5000);
  assert.equal(run.mock.callCount(), 0);
  document.hidden = false;
  document.dispatchEvent(new Event("visibilitychange"));
  await pass(1);
  assert.equal(run.mock.callCount(), 1);
});

test("a refused request is repeated after its pause, and the page hears of it", async () => {
  const answers = [new Refused(503, "full"), null];
  const run = mock.fn(() => {
    const error = answers.shift();
    if (error) throw error;
  });
  const failed = mock.fn();
  new Refresher(run, { minMs: 0, retryMs: 3000, failed }).soon();
  await pass(1);
  assert.deepEqual(failed.mock.calls.map((call) => call.arguments[0].message), ["full"]);
  await pass(2900);
  assert.equal(run.mock.callCount(), 1);
  await pass(100);
  await pass(1);
  assert.equal(run.mock.callCount(), 2);
});

test("a signed-out page is loaded anew", async () => {
  const run = mock.fn(() => {
    throw new Refused(401, "signed out");
  });
  new Refresher(run).soon();
  await pass(1);
  assert.equal(location.reload.mock.callCount(), 1);
  await pass(9000);
  assert.equal(run.mock.callCount(), 1);
});
