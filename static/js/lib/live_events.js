// One WebSocket per page. `subscribe(stream, after, handler)` delivers every event after the cursor exactly
// once and in order, over any number of reconnects; a state pill tells people how fresh the page is.
const FIRST_RETRY_MS = 300;
const LAST_RETRY_MS = 8000;
const SILENCE_MS = 16000; // the server pings every 5 s
const MAX_RECENT = 200; // events kept for a script that loads after the first ones came
const subscriptions = new Map(); // stream -> { after, handlers, recent }
const stateWatchers = new Set();
let socket = null;
let retryMs = FIRST_RETRY_MS;
let retryTimer = 0;
let state = "connecting";
let lastHeard = 0;

export function subscribe(stream, after, handler) {
  const known = subscriptions.get(stream);
  if (known) {
    const missed = known.recent.filter(({ seq }) => seq > Number(after));
    queueMicrotask(() => missed.forEach((event) => hand(handler, event)));
    known.handlers.add(handler);
  } else {
    subscriptions.set(stream, { after: Number(after) || 0, handlers: new Set([handler]), recent: [], watchers: new Set() });
    if (socket?.readyState === WebSocket.OPEN) ask(stream);
  }
  if (!socket) open();
  return () => unsubscribe(stream, handler);
}

function unsubscribe(stream, handler) {
  const known = subscriptions.get(stream);
  known?.handlers.delete(handler);
  if (!known || known.handlers.size) return;
  subscriptions.delete(stream);
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ unsubscribe: stream }));
}

export function onState(watcher) {
  stateWatchers.add(watcher);
  watcher(state);
  return () => stateWatchers.delete(watcher);
}

function setState(next) {
  state = next;
  for (const watcher of stateWatchers) watcher(state);
}

// Screens of a subscribed stream as they are taken, before the events that tell of them; none may come.
export function watchPictures(stream, watcher) {
  subscriptions.get(stream).watchers.add(watcher);
  if (socket?.readyState === WebSocket.OPEN) ask(stream);
}

function ask(stream) {
  const { after, watchers } = subscriptions.get(stream);
  socket.send(JSON.stringify({ subscribe: stream, after, pictures: watchers.size > 0 }));
}

function open() {
  showPill();
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  socket = new WebSocket(`${scheme}://${location.host}/ws/live/`);
  socket.binaryType = "arraybuffer";
  socket.addEventListener("open", () => {
    retryMs = FIRST_RETRY_MS;
    lastHeard = Date.now();
    setState("live");
    for (const stream of subscriptions.keys()) ask(stream);
  });
  socket.addEventListener("message", ({ data }) => (typeof data === "string" ? receive(JSON.parse(data)) : receivePicture(data)));
  socket.addEventListener("close", (event) => retry(event.code));
}

function receive(event) {
  lastHeard = Date.now();
  const known = subscriptions.get(event.stream);
  if (!known || !event.type) return;
  // A reset says that older events were pruned: its number may even be below ours (a restored database).
  if (event.type !== "stream.reset" && !(event.seq > known.after)) return;
  known.after = event.seq;
  known.recent = [...known.recent, event].slice(-MAX_RECENT);
  for (const handler of known.handlers) hand(handler, event);
}

// What fails in one part of a page keeps no event from the others.
function hand(handler, event) {
  try {
    handler(event);
  } catch (error) {
    reportError(error);
  }
}

// A head as JSON in one line, then the image.
function receivePicture(data) {
  lastHeard = Date.now();
  const bytes = new Uint8Array(data);
  const end = bytes.indexOf(10);
  const { stream, kind, ...head } = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)));
  const image = new Blob([bytes.subarray(end + 1)], { type: kind });
  for (const watcher of subscriptions.get(stream)?.watchers ?? []) watcher({ ...head, image });
}

function retry(code) {
  socket = null;
  if (code === 4401 || code === 4403) return setState("refused");
  setState("reconnecting");
  clearTimeout(retryTimer);
  retryTimer = setTimeout(open, retryMs * (0.75 + Math.random() / 2));
  retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
}

function reconnectNow() {
  if (socket || !subscriptions.size) return;
  clearTimeout(retryTimer);
  retryMs = FIRST_RETRY_MS;
  open();
}

const WORDS = {
  connecting: ["Connecting", "neutral", "Opening the live connection"],
  live: ["Live", "good", "This page updates by itself"],
  reconnecting: ["Reconnecting", "warning", "The server does not answer; nothing is lost, the page catches up by itself"],
  refused: ["Not allowed", "bad", "Sign in again to see live updates"],
};

// Shows the state in every [data-live-pill] of a page that has subscribed to something.
let isPillShown = false;
function showPill() {
  if (isPillShown) return;
  isPillShown = true;
  onState((current) => {
    const [label, tone, title] = WORDS[current];
    document.body.dataset.live = current;
    for (const pill of document.querySelectorAll("[data-live-pill]")) {
      pill.hidden = false;
      pill.className = `pill tone-${tone}`;
      pill.title = title;
      pill.querySelector("[data-label]").textContent = label;
    }
  });
}

setInterval(() => {
  if (socket?.readyState === WebSocket.OPEN && Date.now() - lastHeard > SILENCE_MS) socket.close();
}, 4000);
window.addEventListener("online", reconnectNow);
document.addEventListener("visibilitychange", () => !document.hidden && reconnectNow());
