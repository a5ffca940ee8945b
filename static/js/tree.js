// The tree of branches: rows follow the streams of those that run; arrows and j, k, h, l walk through it.
import { bind } from "./lib/keys.js";
import { showPill, subscribe } from "./lib/live.js";
import { morphInto } from "./lib/morph.js";
import { refreshTimes } from "./lib/times.js";

const MIN_MS = 300;
const RETRY_MS = 2000;
const root = document.querySelector("[data-tree]");
const watched = new Set();
let timer = 0;
let isBusy = false;
let isDirty = false;

function refreshSoon(delay = MIN_MS) {
  isDirty = true;
  if (!timer && !isBusy) timer = setTimeout(refresh, delay);
}

async function refresh() {
  timer = 0;
  isDirty = false;
  isBusy = true;
  let isFine = false;
  try {
    const response = await fetch(root.dataset.url);
    if (response.redirected) return location.reload(); // signed out meanwhile
    isFine = response.ok;
    if (isFine) morphInto(root, await response.text());
  } catch {
    isFine = false; // the server is away: tried again below
  }
  isBusy = false;
  refreshTimes(root);
  watch();
  if (isDirty || !isFine) refreshSoon(isFine ? MIN_MS : RETRY_MS);
}

function watch() {
  for (const row of root.querySelectorAll('[data-node][data-final=""]')) {
    if (watched.has(row.dataset.node)) continue;
    watched.add(row.dataset.node);
    subscribe(`trajectory.${row.dataset.node}`, row.dataset.cursor, () => refreshSoon());
  }
}

const links = () => [...root.querySelectorAll("[data-node]")].map((row) => [...row.querySelectorAll("a")]);

function walk(down, right) {
  const rows = links();
  const y = rows.findIndex((row) => row.includes(document.activeElement));
  if (y < 0) return rows[0]?.[0]?.focus();
  const x = rows[y].indexOf(document.activeElement);
  const row = rows[Math.min(rows.length - 1, Math.max(0, y + down))];
  row[Math.min(row.length - 1, Math.max(0, down ? Math.min(x, row.length - 1) : x + right))]?.focus();
}

const WALK = "Tree";
for (const [keys, label, down, right] of [
  ["j", "Branch below", 1, 0],
  ["k", "Branch above", -1, 0],
  ["l", "Turn on", 0, 1],
  ["h", "Turn back", 0, -1],
]) {
  bind(keys, label, () => walk(down, right), WALK);
}
for (const [keys, label, down, right] of [
  ["ArrowDown", "Branch below", 1, 0],
  ["ArrowUp", "Branch above", -1, 0],
  ["ArrowRight", "Turn on", 0, 1],
  ["ArrowLeft", "Turn back", 0, -1],
]) {
  bind(keys, label, () => walk(down, right), WALK);
}
bind("t", "Turns, rewards and tokens", () => document.querySelector("[data-viewer]")?.click(), WALK);

showPill();
watch();
watched.add(root.dataset.root);
subscribe(`trajectory.${root.dataset.root}`, root.dataset.cursor, () => refreshSoon());
