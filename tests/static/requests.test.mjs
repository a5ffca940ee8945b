// Requests at a real server: what is refused is a sentence, and labels leave in order.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, beforeEach, mock, test } from "node:test";

import "./browser_stand_ins.mjs";

const { getJson, postForFile, postJson, Refused } = await import("../../static/js/lib/requests.js");
const { LabelOutbox } = await import("../../static/js/replay/label_outbox.js");
const { EntryLoader, wanted } = await import("../../static/js/replay/entry_loader.js");
const { append, newLabelling, putEntries } = await import("../../static/js/replay/labelling_state.js");

let handle = null;
const requests = [];
const server = createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  requests.push({ method: request.method, url: request.url, headers: request.headers, body });
  await handle(response, requests.at(-1));
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${server.address().port}/x`;
after(() => server.close());
beforeEach(() => (requests.length = 0));

const answer = (status, body, headers = { "content-type": "application/json" }) => {
  handle = (response) => response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
};
const refused = (message, status) => (error) => error instanceof Refused && error.message === message && error.status === status;

test("a request carries the token and its values", async () => {
  answer(200, { id: 1 });
  assert.deepEqual(await postJson(url, { a: [1] }), { id: 1 });
  const [{ method, headers, body }] = requests;
  assert.deepEqual([method, headers["x-csrftoken"], headers["content-type"], body], ["POST", "a-token", "application/json", '{"a":[1]}']);
});

test("a refusal is the server's sentence, in whichever form it comes", async () => {
  const cases = [
    [422, { error: { message: "no name" } }, "no name"],
    [409, { error: "it ended" }, "it ended"],
    [400, { note: "too long" }, "too long"],
    [500, {}, "The server answered 500."],
  ];
  for (const [status, body, message] of cases) {
    answer(status, body);
    await assert.rejects(getJson(url), refused(message, status));
  }
  answer(403, "not yours", { "content-type": "text/plain; charset=utf-8" });
  await assert.rejects(getJson(url), refused("not yours", 403));
  answer(502, "<h1>Bad gateway</h1>", { "content-type": "text/html" });
  await assert.rejects(getJson(url), refused("The server answered 502.", 502));
});

test("a sign-in page in place of an answer, or 401, is signed out", async () => {
  answer(401, {});
  await assert.rejects(getJson(url), (error) => error.isSignedOut);
  handle = (response, { url: path }) => (path === "/x" ? response.writeHead(302, { location: "/login/" }).end() : response.end("sign in"));
  await assert.rejects(getJson(url), (error) => error.isSignedOut);
});

test("a server that does not answer is said so", async () => {
  handle = (response) => response.destroy();
  await assert.rejects(getJson(url), refused("The server does not answer; try again.", 0));
});

test("a file comes with the server's name for it", async () => {
  answer(200, "a,b", { "content-disposition": 'attachment; filename="runs.csv"' });
  const { file, name } = await postForFile(url, {});
  assert.deepEqual([await file.text(), name], ["a,b", "runs.csv"]);
});

test("labels leave one after the other, also behind one that was refused", async () => {
  const outbox = new LabelOutbox();
  const log = [];
  handle = async (response, { body }) => {
    const { n } = JSON.parse(body);
    log.push(`in ${n}`);
    await new Promise((resolve) => setTimeout(resolve, n === 1 ? 60 : 1));
    log.push(`out ${n}`);
    response.writeHead(n === 2 ? 409 : 200, { "content-type": "application/json" }).end(JSON.stringify({ n, error: "gone" }));
  };
  const sent = [1, 2, 3].map((n) => outbox.post(url, { n }));
  assert.equal(outbox.numWaiting, 3);
  const results = await Promise.allSettled(sent);
  assert.deepEqual(results.map(({ value, reason }) => value?.n ?? reason.message), [1, "gone", 3]);
  assert.deepEqual(log, ["in 1", "out 1", "in 2", "out 2", "in 3", "out 3"]);
  await outbox.tail;
  assert.equal(outbox.numWaiting, 0);
});

const entry = (id) => ({ id, turns: [{ frame: "" }] });

test("rows are wanted while few are left and the server has more", () => {
  const order = Array.from({ length: 30 }, (_, place) => 100 - place);
  const state = (more) => newLabelling({ order, entries: order.map(entry), hasMore: true, ...more });
  assert.deepEqual(wanted(state({ position: 10 })), { ids: "" });
  assert.deepEqual(wanted(state({ position: 11 })), { ids: "", before: "71" });
  assert.deepEqual(wanted(state({ position: 11, hasMore: false })), { ids: "" });
});

test("what is lacking is fetched until it is here, and what is no more is named", async () => {
  let state = newLabelling({ order: [9, 8, 7], entries: [entry(9)] });
  const gone = [];
  answer(200, { entries: [entry(8)] });
  const take = mock.fn(({ entries }, missing) => {
    gone.push(...missing);
    state = putEntries(append(state, [], false), entries);
    state = { ...state, order: state.order.filter((id) => !missing.includes(id)) };
  });
  const loader = new EntryLoader({ url, query: "verdict=inbox", read: () => state, take });
  await Promise.all([loader.fetchLacking(), loader.fetchLacking()]);
  assert.deepEqual([requests.length, requests[0].url], [1, "/x?verdict=inbox&ids=8%2C7"]);
  assert.deepEqual([gone, state.order], [[7], [9, 8]]);
});

test("a refused fetch is left for the next key", async () => {
  const state = newLabelling({ order: [9], entries: [] });
  const loader = new EntryLoader({ url, query: "", read: () => state, take: assert.fail });
  answer(503, {});
  await loader.fetchLacking();
  assert.equal(loader.isFetching, false);
  await loader.fetchLacking();
  assert.equal(requests.length, 2);
});
