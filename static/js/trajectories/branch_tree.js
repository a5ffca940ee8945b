// The tree of branches: arrows and h, j, k, l walk through it.
import { bind } from "../lib/keyboard_shortcuts.js";

const root = document.querySelector("[data-tree]");

function walk(down, right) {
  const rows = [...root.querySelectorAll("[data-node]")].map((row) => [...row.querySelectorAll("a")]);
  const y = rows.findIndex((row) => row.includes(document.activeElement));
  if (y < 0) return rows[0]?.[0]?.focus();
  const x = rows[y].indexOf(document.activeElement);
  const row = rows[Math.min(rows.length - 1, Math.max(0, y + down))];
  row[Math.min(row.length - 1, Math.max(0, down ? Math.min(x, row.length - 1) : x + right))]?.focus();
}

const WALK = "Tree";
for (const [keys, label, down, right] of [
  [["j", "ArrowDown"], "Branch below", 1, 0],
  [["k", "ArrowUp"], "Branch above", -1, 0],
  [["l", "ArrowRight"], "Next turn", 0, 1],
  [["h", "ArrowLeft"], "Previous turn", 0, -1],
]) {
  for (const key of keys) bind(key, label, () => walk(down, right), WALK);
}
bind("t", "Turns, rewards and tokens", () => document.querySelector("[data-viewer]")?.click(), WALK);
