// The trajectory viewer: shows the player's state and keeps it up to date with what the server tells.
import { keepImage, prefetch } from "../lib/frame_images.js";
import { onState, subscribe, watchPictures } from "../lib/live_events.js";
import { Refresher } from "../lib/refresher.js";
import { getJson } from "../lib/requests.js";
import { putHtml, showHtml } from "../lib/server_html.js";
import { Filmstrip } from "./filmstrip.js";
import { GroupLane } from "./group_lane.js";
import { ObservedTexts } from "./observed_texts.js";
import * as player from "./player_state.js";
import { TurnFeed } from "./turn_feed.js";
import { Transcript } from "./transcript.js";
import { startAlternatives } from "./token_alternatives.js";
import { TurnTexts } from "./turn_texts.js";
import { describeTurn, TurnScreen } from "./turn_screen.js";
import { positionFromHash, startControls } from "./viewer_controls.js";

const REACH = { back: 2, forward: 5 }; // cards that are fetched together with the one that is looked at
const MAX_KEPT = 30; // cards farther from the watched turn leave the page
const AFTER_FRAME_MS = 60; // a new turn's screen first, then all else, then its card
const LIVE_LABELS = { connecting: "Connecting", reconnecting: "Reconnecting", refused: "Not allowed" };
const root = document.getElementById("viewer");
const find = (name) => root.querySelector(`[data-${name}]`);
const parts = Object.fromEntries(
  ["frame", "wait", "waiting", "cards", "place", "caption", "figures", "reward", "milestones", "live-label"].map((name) => [name, find(name)]),
);
const screen = new TurnScreen(parts.frame);
const strip = new Filmstrip(find("filmstrip"));
const lane = new GroupLane(find("lane"), () => ({ key: keyOf(player.currentTurn(state)), position: state.position }));
const feed = new TurnFeed(root.dataset.turnsUrl, putTurns);
const texts = new TurnTexts(root.dataset.turnsUrl);
const transcript = new Transcript(root, () => draw());
const observed = new ObservedTexts(root, parts.frame);
const summary = new Refresher(fetchSummary, { minMs: 0 });
const { rest, ...first } = JSON.parse(document.getElementById("player-data").textContent);
const brief = player.briefTurns(rest, first.turns.at(-1));
strip.fill(brief);
let state = player.newPlayer({ ...first, turns: [...first.turns, ...brief], position: positionFromHash() });
let timer = 0;
let drawTimer = 0;
let drawnKey = "";
let connection = "connecting";

function update(next) {
  const isSamePlace = next.position === state.position && next.turns === state.turns;
  state = next;
  draw({ isSamePlace });
}

// --- what people see -------------------------------------------------------------------------------

const keyOf = (turn) => (!turn ? "" : turn.isEnd ? "end" : String(turn.index));

function drawScreen() {
  const turn = player.currentTurn(state);
  parts.wait.hidden = Boolean(turn);
  parts.frame.hidden = !turn;
  if (turn) showTurn(turn);
  return turn;
}

function draw({ isSamePlace = false } = {}) {
  clearTimeout(drawTimer);
  drawTimer = 0;
  const turn = drawScreen();
  prefetch(player.framesAround(state));
  drawControls(turn);
  strip.select(keyOf(turn), { isScrolling: !isSamePlace });
  lane.mark();
  showCard(turn);
  observed.show(turn);
  clearTimeout(timer);
  if (state.isPlaying) timer = setTimeout(() => update(player.tick(state)), player.tickMs(state));
}

function showTurn(turn) {
  const key = `${keyOf(turn)} ${turn.frame}`;
  const isNew = key !== drawnKey;
  drawnKey = key;
  screen.show(turn, () => isNew && root.dispatchEvent(new CustomEvent("frame:painted", { detail: { ...turn, paintedAtMs: Date.now() } })));
}

function drawControls(turn) {
  const { place, caption } = describeTurn(turn, state);
  parts.place.textContent = turn ? place : "No turns yet";
  parts.caption.textContent = caption;
  const isLive = connection === "live";
  const isBehind = !state.isFinal && !state.isFollowing;
  root.classList.toggle("is-playing", state.isPlaying);
  root.classList.toggle("is-running", !state.isFinal);
  root.classList.toggle("is-following", !state.isFinal && state.isFollowing && isLive);
  root.classList.toggle("is-reconnecting", !state.isFinal && !isLive);
  root.classList.toggle("is-behind", isBehind && isLive);
  parts["live-label"].textContent = LIVE_LABELS[connection] ?? (isBehind ? "Jump to live" : "Live");
  for (const button of root.querySelectorAll("[data-speed]")) {
    button.setAttribute("aria-pressed", Number(button.dataset.speed) === state.speed);
  }
}

const cardOf = (turn) => parts.cards.querySelector(`[data-card="${keyOf(turn)}"]`);

function showCard(turn) {
  const key = keyOf(turn);
  if (transcript.isOn) return showAll(key);
  for (const card of [...parts.cards.children]) {
    card.hidden = card.dataset.card !== key;
    const distance = Math.abs(Number.parseInt(card.dataset.card, 10) - turn?.index);
    if (distance > MAX_KEPT) card.remove();
  }
  const card = cardOf(turn);
  if (turn && !turn.isEnd && !card) wantAround(state.position);
  if (card && root.classList.contains("is-tokens-on")) texts.showTokens(card);
}

function showAll(key) {
  transcript.show(key);
  feed.want(...state.turns.filter((turn) => !turn.isComing && !cardOf(turn)).map((turn) => turn.index));
}

function wantAround(position) {
  const near = state.turns.slice(Math.max(0, position - REACH.back), position + REACH.forward + 1);
  feed.want(...near.filter((turn) => !turn.isComing && !cardOf(turn)).map((turn) => turn.index));
}

// --- what the server tells -------------------------------------------------------------------------

function putTurns(items) {
  let next = state;
  for (const { turn, cell, card } of items) {
    strip.put(turn.index, cell);
    putHtml(parts.cards, "data-card", turn.index, card);
    next = player.putTurn(next, { ...turn, isComing: false });
  }
  update(next);
}

async function fetchSummary() {
  const found = await getJson(root.dataset.summaryUrl);
  showHtml(parts.figures, found.figures);
  showHtml(parts.reward, found.reward);
  showHtml(parts.waiting, found.waiting);
  showHtml(parts.milestones, found.milestones);
  if (found.endCell.trim()) strip.put("end", found.endCell);
  if (found.isFinal && !state.isFinal) {
    const turns = state.turns.filter(({ index }) => index < found.numTurns); // a screen may have come without its turn
    update(player.finish({ ...state, turns }, found.endFrame));
    feed.want(...state.turns.map((turn) => turn.index)); // their reward terms come with the score
  }
}

function addTurn({ index, frame, width, height, observed_at_ms: observedAtMs }) {
  const times = { observedAtMs, receivedAtMs: Date.now() };
  state = player.putTurn(state, { index, frame, width, height, ...times, action: null, keys: [], caption: "", state: "waiting", isComing: true });
  drawScreen();
  drawTimer ||= setTimeout(draw, AFTER_FRAME_MS);
}

// The screen of a turn that is being recorded; `turn.added` follows.
function addPicture({ image, ...turn }) {
  keepImage(turn.frame, image);
  if (!state.isFinal && turn.index >= state.turns.length) addTurn(turn);
}

const handlers = {
  "turn.added": (turn) => {
    addTurn(turn);
    setTimeout(() => feed.want(turn.index), AFTER_FRAME_MS);
  },
  "turn.updated": ({ index }) => feed.want(index),
  "trajectory.updated": () => summary.soon(),
  "stream.reset": () => location.reload(), // what came meanwhile is no longer kept as events
};

startControls(root, { read: () => state, update, lane });
startAlternatives(root);
root.addEventListener("click", (event) => {
  const asked = event.target.closest("[data-do]")?.dataset.do;
  if (asked === "whole") texts.showWhole(event.target.closest("[data-card]"));
  if (asked === "least") texts.goToLeast(event.target.closest("[data-card]"));
  if (asked === "more-tokens") texts.showTokens(event.target.closest("[data-card]"), { isMore: true });
});
onState((next) => {
  connection = next;
  drawControls(player.currentTurn(state));
});
draw();
lane.centre();
subscribe(`trajectory.${root.dataset.trajectory}`, root.dataset.cursor, ({ type, payload }) => handlers[type]?.(payload));
if (!state.isFinal) watchPictures(`trajectory.${root.dataset.trajectory}`, addPicture);
