// Turns that a page wants: fetched in requests of at most fifty, again when wanted again or refused.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, beforeEach, test } from "node:test";

import "./browser_stand_ins.mjs";

const { TurnFeed } = await import("../../static/js/trajectories/turn_feed.js");

let failures = 0;
let requested = [];
const server = createServer((request, response) => {
  const indexes = new URL(request.url, "http://desk.test").searchParams.get("indexes").split(",").map(Number);
  requested.push(indexes);
  const status = failures-- > 0 ? 503 : 200;
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ turns: indexes.map((index) => ({ index })) }));
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${server.address().port}/turns/`;
after(() => server.close());
beforeEach(() => {
  requested = [];
  failures = 0;
});

function watch(number) {
  const found = [];
  return new Promise((resolve) => {
    const feed = new TurnFeed(url, (turns) => {
      found.push(...turns.map(({ index }) => index));
      if (found.length >= number) resolve(found);
    });
    feed.want(...Array(number).keys());
    feed.want(0);
  });
}

test("what is wanted twice before it is fetched is fetched once", async () => {
  assert.deepEqual([await watch(3), requested], [[0, 1, 2], [[0, 1, 2]]]);
});

test("many turns come in requests of fifty", async () => {
  assert.deepEqual(await watch(120), [...Array(120).keys()]);
  assert.deepEqual(requested.map(({ length }) => length), [50, 50, 20]);
});

test("turns of a refused request are requested again", async () => {
  failures = 1;
  assert.deepEqual([await watch(2), requested], [[0, 1], [[0, 1], [0, 1]]]);
});
