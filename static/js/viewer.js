// The trajectory viewer: wires the player's state to the page, the keyboard and the live stream.
import { bind } from "./lib/keys.js";
import { onState, showPill, subscribe } from "./lib/live.js";
import { prefetch, Screen, showWidth } from "./lib/frames.js";
import { refreshTimes } from "./lib/times.js";
import { drawOverlay } from "./overlay.js";
import * as player from "./player.js";
import { LaneFeed, TurnFeed } from "./feeds.js";

const AFTER_FRAME_MS = 60; // a new turn's screen first, then its card
const root = document.getElementById("viewer");
const find = (name) => root.querySelector(`[data-${name}]`);
const parts = {
  frame: find("frame"),
  overlay: find("overlay"),
  wait: find("wait"),
  strip: find("filmstrip"),
  cards: find("cards"),
  place: find("place"),
  caption: find("caption"),
  lane: find("lane"),
  figures: find("figures"),
  reward: find("reward"),
  liveLabel: root.querySelector("[data-live-label]"),
};
const screen = new Screen(find("image"));
const stored = JSON.parse(document.getElementById("player-data").textContent);
let state = player.newPlayer({ ...stored, position: positionFromHash() });
let timer = 0;
let drawnKey = "";
let connection = "connecting";

function positionFromHash() {
  const found = /turn=(\d+)/.exec(location.hash);
  return found ? Number(found[1]) - 1 : null;
}

function update(next) {
  const isSamePlace = next.position === state.position && next.turns === state.turns;
  state = next;
  draw(isSamePlace);
}

function draw(isSamePlace = false) {
  const turn = player.currentTurn(state);
  parts.wait.hidden = Boolean(turn);
  parts.frame.hidden = !turn;
  if (turn) {
    showWidth(turn.width);
    if (turn.width) parts.frame.style.setProperty("--ratio", turn.width / turn.height);
    const key = `${keyOf(turn)} ${turn.frame}`;
    const isNew = key !== drawnKey;
    drawnKey = key;
    screen.show(turn.frame, () => isNew && painted(turn));
    drawOverlay(parts.overlay, turn);
  }
  prefetch(player.framesAround(state));
  drawControls(turn);
  selectCell(turn, isSamePlace);
  showCard(turn);
  schedule();
}

function painted(turn) {
  root.dispatchEvent(new CustomEvent("frame:painted", { detail: { ...turn, paintedAtMs: Date.now() } }));
}

function drawControls(turn) {
  const number = Math.min(state.position + 1, state.turns.length);
  parts.place.textContent = !turn ? "No turns yet" : turn.isEnd ? "After the last turn" : `Turn ${number} of ${state.turns.length}`;
  parts.caption.textContent = turn?.parseError ? "could not be parsed" : (turn?.caption ?? "");
  const isBehind = !state.isFinal && !state.isFollowing;
  root.classList.toggle("is-playing", state.isPlaying);
  root.classList.toggle("is-running", !state.isFinal);
  root.classList.toggle("is-following", !state.isFinal && state.isFollowing && connection === "live");
  root.classList.toggle("is-reconnecting", !state.isFinal && connection !== "live");
  root.classList.toggle("is-behind", isBehind && connection === "live");
  parts.liveLabel.textContent = connection === "live" ? (isBehind ? "Jump to live" : "Live") : connection === "connecting" ? "Connecting" : "Reconnecting";
  for (const button of root.querySelectorAll("[data-speed]")) {
    button.setAttribute("aria-pressed", Number(button.dataset.speed) === state.speed);
  }
}

function keyOf(turn) {
  return !turn ? "" : turn.isEnd ? "end" : String(turn.index);
}

function selectCell(turn, isSamePlace) {
  const key = keyOf(turn);
  for (const cell of parts.strip.querySelectorAll('[aria-selected="true"]')) {
    if (cell.dataset.cell !== key) cell.setAttribute("aria-selected", "false");
  }
  const cell = parts.strip.querySelector(`[data-cell="${key}"]`);
  cell?.setAttribute("aria-selected", "true");
  if (cell && !isSamePlace) {
    const left = cell.offsetLeft - parts.strip.offsetLeft;
    const isVisible = left >= parts.strip.scrollLeft && left + cell.offsetWidth <= parts.strip.scrollLeft + parts.strip.clientWidth;
    if (!isVisible) parts.strip.scrollLeft = left - parts.strip.clientWidth / 2;
  }
  markLane(key);
}

function markLane(key) {
  for (const old of parts.lane.querySelectorAll(".is-current")) old.classList.remove("is-current");
  const cells = parts.lane.querySelectorAll(".lane-row.is-watched .lane-cell");
  cells[key === "end" ? cells.length - 1 : state.position]?.classList.add("is-current");
}

function showCard(turn) {
  const key = keyOf(turn);
  for (const card of parts.cards.children) card.hidden = card.dataset.card !== key;
  if (turn && !turn.isEnd && !parts.cards.querySelector(`[data-card="${key}"]`)) feed.want(turn.index);
}

function schedule() {
  clearTimeout(timer);
  if (state.isPlaying) timer = setTimeout(() => update(player.tick(state)), player.tickMs(state));
}

// --- what the server sends -------------------------------------------------------------------------

function replaceOrInsert(holder, attribute, key, html) {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  const fresh = template.content.firstElementChild;
  if (!fresh) return;
  const known = holder.querySelector(`[${attribute}="${key}"]`);
  if (known) return known.replaceWith(fresh);
  const next = [...holder.children].find((node) => {
    const other = node.getAttribute(attribute);
    return other === "end" || Number(other) > Number(key);
  });
  holder.insertBefore(fresh, next ?? null);
}

const feed = new TurnFeed(root.dataset.turnsUrl, (items) => {
  let next = state;
  for (const { turn, cell, card } of items) {
    replaceOrInsert(parts.strip, "data-cell", turn.index, cell);
    replaceOrInsert(parts.cards, "data-card", turn.index, card);
    next = player.putTurn(next, turn);
  }
  update(next);
});

// The watched row in the middle of the lane, without moving the page.
function centreLane() {
  const rows = parts.lane.querySelector(".lane-rows");
  const row = rows?.querySelector(".is-watched");
  if (row) rows.scrollTop = row.offsetTop - rows.offsetTop - (rows.clientHeight - row.offsetHeight) / 2;
}

const lane = new LaneFeed(root, parts.lane, () => {
  markLane(keyOf(player.currentTurn(state)));
  watchSiblings();
});

async function refreshSummary() {
  const response = await fetch(root.dataset.summaryUrl);
  if (!response.ok) return;
  const summary = await response.json();
  parts.figures.innerHTML = summary.figures;
  parts.reward.innerHTML = summary.reward;
  if (summary.endCell.trim()) replaceOrInsert(parts.strip, "data-cell", "end", summary.endCell);
  refreshTimes(parts.figures);
  parts.wait.querySelector("[data-waiting]").innerHTML = summary.waiting;
  refreshTimes(parts.wait);
  if (summary.isFinal && !state.isFinal) {
    update(player.finish(state, summary.endFrame));
    feed.want(...state.turns.map((turn) => turn.index)); // their reward terms come with the score
  }
}

const handlers = {
  "turn.added": ({ index, frame, width, height, observed_at_ms: observedAtMs }) => {
    update(player.putTurn(state, { index, frame, width, height, observedAtMs, receivedAtMs: Date.now(), action: null, keys: [], caption: "", state: "waiting" }));
    setTimeout(() => feed.want(index), AFTER_FRAME_MS);
    lane.refresh();
  },
  "turn.updated": ({ index }) => feed.want(index),
  "trajectory.updated": () => {
    refreshSummary();
    lane.refresh();
  },
};

const own = Number(root.dataset.trajectory);
const watched = new Set([own]);
function watchSiblings() {
  for (const row of parts.lane.querySelectorAll('[data-sibling][data-final="0"]')) {
    const id = Number(row.dataset.sibling);
    if (watched.has(id)) continue;
    watched.add(id);
    subscribe(`trajectory.${id}`, row.dataset.cursor, () => lane.refresh());
  }
}

// --- keyboard and mouse ----------------------------------------------------------------------------

function sibling(delta) {
  const rows = [...parts.lane.querySelectorAll("[data-sibling]")];
  const here = rows.findIndex((row) => row.classList.contains("is-watched"));
  const link = rows[here + delta]?.querySelector("[data-sibling-link]");
  if (link) location.assign(`${link.getAttribute("href").split("#")[0]}${turnHash()}`);
}

const turnHash = () => `#turn=${Math.min(state.position + 1, Math.max(1, state.turns.length))}`;
const openGroup = (url) => url && location.assign(url);
const toggleOverlay = () => {
  const isOff = root.classList.toggle("is-overlay-off");
  root.querySelector('[data-do="overlay"]').setAttribute("aria-pressed", String(!isOff));
};
const toggleTokens = () => {
  const isOn = root.classList.toggle("is-tokens-on");
  localStorage.setItem("deskhand-tokens", isOn ? "1" : "");
};
const moved = (next) => {
  update(next);
  history.replaceState(null, "", turnHash());
};

const actions = {
  home: () => moved(player.goTo({ ...state, isPlaying: false }, 0)),
  back: () => moved(player.stepBy(state, -1)),
  forward: () => moved(player.stepBy(state, 1)),
  play: () => update(player.togglePlay(state)),
  live: () => moved(player.jumpToLive(state)),
  overlay: toggleOverlay,
  tokens: toggleTokens,
};

const WATCH = "Watch";
bind("j", "Next turn", actions.forward, WATCH);
bind("k", "Turn before", actions.back, WATCH);
bind("J", "Five turns on", () => moved(player.stepBy(state, 5)), WATCH);
bind("K", "Five turns back", () => moved(player.stepBy(state, -5)), WATCH);
bind(" ", "Play or pause", actions.play, WATCH);
bind("Home", "First turn", actions.home, WATCH);
bind("End", "Last turn; while it runs, live", actions.live, WATCH);
for (const key of [1, 2, 3, 4]) bind(String(key), `${player.SPEEDS[key]} turns per second`, () => update(player.setSpeed(state, key)), WATCH);
bind("o", "Draw the action or not", toggleOverlay, WATCH);
bind("t", "Tokens coloured by probability", toggleTokens, WATCH);
bind("v", "Watch the desktop itself, take it over", () => root.querySelector("[data-desktop]")?.click(), WATCH);
bind("h", "Sibling above", () => sibling(-1), "Group");
bind("l", "Sibling below", () => sibling(1), "Group");
bind("[", "Group before", () => openGroup(root.dataset.previousGroup), "Group");
bind("]", "Group after", () => openGroup(root.dataset.nextGroup), "Group");

root.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button) return actions[button.dataset.do]?.();
  const speed = event.target.closest("[data-speed]");
  if (speed) return update(player.setSpeed(state, Number(speed.dataset.speed)));
  const cell = event.target.closest("[data-cell]");
  if (!cell) return;
  const key = cell.dataset.cell;
  const place = key === "end" ? state.turns.length : state.turns.findIndex((turn) => String(turn.index) === key);
  moved(player.goTo({ ...state, isPlaying: false }, place));
});
window.addEventListener("hashchange", () => {
  const position = positionFromHash();
  if (position !== null) update(player.goTo(state, position));
});

if (localStorage.getItem("deskhand-tokens")) root.classList.add("is-tokens-on");
showPill();
onState((next) => {
  connection = next;
  drawControls(player.currentTurn(state));
});
draw();
centreLane();
subscribe(`trajectory.${own}`, root.dataset.cursor, ({ type, payload }) => handlers[type]?.(payload));
watchSiblings();
