// The page's cursor: every event after it exactly once and in order, over any number of connections.
import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { settle } from "./browser_stand_ins.mjs";

// The server's end of each connection that the page opens.
const lines = [];
globalThis.WebSocket = class extends EventTarget {
  static OPEN = 1;
  readyState = 0;
  requests = [];

  constructor(url) {
    super();
    this.url = url;
    lines.push(this);
  }

  send(text) {
    this.requests.push(JSON.parse(text));
  }

  accept() {
    this.readyState = 1;
    this.dispatchEvent(new Event("open"));
  }

  deliver(data) {
    this.dispatchEvent(Object.assign(new Event("message"), { data: data instanceof ArrayBuffer ? data : JSON.stringify(data) }));
  }

  end(code = 1006) {
    this.readyState = 3;
    this.dispatchEvent(Object.assign(new Event("close"), { code }));
  }
};
mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
const { onState, subscribe, watchPictures } = await import("../../static/js/lib/live_events.js");
let state = "";
onState((next) => (state = next));

const event = (seq, stream = "trajectory.1", type = "turn.added") => ({ stream, seq, type, payload: {} });
const heard = [];
const hear = ({ seq }) => heard.push(seq);
const line = () => lines.at(-1);

test("a page asks for what comes after its cursor, on one connection", () => {
  subscribe("trajectory.1", "41", hear);
  subscribe("fleet", 7, () => {});
  assert.deepEqual([lines.length, line().url], [1, "ws://desk.test/ws/live/"]);
  assert.deepEqual(line().requests, []);
  line().accept();
  assert.deepEqual(line().requests, [
    { subscribe: "trajectory.1", after: 41, pictures: false },
    { subscribe: "fleet", after: 7, pictures: false },
  ]);
  assert.equal(state, "live");
});

test("an event is delivered once; an old one and one of another stream never", () => {
  for (const one of [event(41), event(42), event(42), event(43), event(42), event(9, "trajectory.2")]) line().deliver(one);
  line().deliver({ subscribed: "trajectory.1", seq: 43 });
  line().deliver({ ping: 0 });
  assert.deepEqual(heard, [42, 43]);
});

test("a new connection goes on behind the last event that came", () => {
  line().end();
  assert.equal(state, "reconnecting");
  mock.timers.tick(400);
  assert.equal(lines.length, 2);
  line().accept();
  assert.deepEqual(line().requests[0], { subscribe: "trajectory.1", after: 43, pictures: false });
  for (const seq of [43, 44]) line().deliver(event(seq));
  assert.deepEqual(heard, [42, 43, 44]);
});

test("a script that comes late hears what came after its own cursor, then all others", async () => {
  const late = [];
  const end = subscribe("trajectory.1", 42, ({ seq }) => late.push(seq));
  await settle();
  line().deliver(event(45));
  assert.deepEqual([late, heard], [[43, 44, 45], [42, 43, 44, 45]]);
  end();
  line().deliver(event(46));
  assert.deepEqual([late.at(-1), heard.at(-1)], [45, 46]);
  assert.deepEqual(line().requests.filter((request) => request.unsubscribe), []);
});

test("a reset counts whatever its number, and moves the cursor", () => {
  line().deliver(event(3, "trajectory.1", "stream.reset"));
  for (const seq of [3, 4]) line().deliver(event(seq));
  assert.deepEqual(heard.slice(-2), [3, 4]);
});

test("a picture is its head and its image, for those who watch", async () => {
  const seen = [];
  watchPictures("trajectory.1", (picture) => seen.push(picture));
  assert.deepEqual(line().requests.at(-1), { subscribe: "trajectory.1", after: 4, pictures: true });
  const head = new TextEncoder().encode(`${JSON.stringify({ stream: "trajectory.1", kind: "image/png", index: 4, frame: "f4" })}\n`);
  const image = [137, 10, 80];
  line().deliver(new Uint8Array([...head, ...image]).buffer);
  const [{ image: blob, ...rest }] = seen;
  assert.deepEqual([rest, blob.type], [{ index: 4, frame: "f4" }, "image/png"]);
  assert.deepEqual([...new Uint8Array(await blob.arrayBuffer())], image);
});

test("a line that is silent is closed by the page", () => {
  const close = mock.fn();
  line().close = close;
  mock.timers.tick(15_000);
  assert.equal(close.mock.callCount(), 0);
  mock.timers.tick(8_000);
  assert.ok(close.mock.callCount() >= 1);
});

test("retries come later and later, and soon again after one that held", () => {
  line().end();
  const waits = [];
  for (let attempt = 0; attempt < 7; attempt += 1) {
    const before = lines.length;
    let waited = 0;
    for (; lines.length === before && waited < 20_000; waited += 10) mock.timers.tick(10);
    waits.push(waited);
    line().end();
  }
  assert.ok(waits[0] <= 380 && waits[3] >= 1800, waits.join());
  assert.ok(Math.max(...waits) <= 10_010, waits.join());
  mock.timers.tick(11_000);
  line().accept();
  line().end();
  const before = lines.length;
  mock.timers.tick(380);
  assert.equal(lines.length, before + 1);
});

test("a page that may not watch stops asking", () => {
  line().accept();
  line().end(4403);
  const before = lines.length;
  mock.timers.tick(60_000);
  assert.deepEqual([state, lines.length], ["refused", before]);
});
