// The experiment list: the selection for bulk actions (shift-click takes a range), and walking by keyboard.
import { bind } from "../lib/keyboard_shortcuts.js";

const form = document.getElementById("bulk");
let lastTicked = null;

const boxes = () => [...form.querySelectorAll("input[name=id]")];

function refreshBar() {
  const count = boxes().filter((box) => box.checked).length;
  const bar = form.querySelector("[data-bulk-bar]");
  if (!bar) return;
  bar.hidden = count === 0;
  bar.querySelector("[data-bulk-count]").textContent = count;
  const chosen = boxes().filter((box) => box.checked).map((box) => Number(box.value));
  const ids = chosen.sort((a, b) => a - b).map((id) => `id=${id}`); // the oldest is the baseline
  for (const link of bar.querySelectorAll("[data-bulk-link]")) {
    link.href = `${link.pathname}?${ids.join("&")}${link.dataset.bulkLink}`;
  }
  bar.querySelector("[data-bulk-compare]").classList.toggle("disabled", count < 2);
  bar.querySelector("[data-bulk-pair]").classList.toggle("disabled", count !== 2);
  for (const box of boxes()) box.closest("tr").classList.toggle("selected", box.checked);
}

form.addEventListener("click", (event) => {
  const box = event.target.closest("input[name=id]");
  if (box) {
    const all = boxes();
    if (event.shiftKey && lastTicked && all.includes(lastTicked)) {
      const [from, to] = [all.indexOf(lastTicked), all.indexOf(box)].sort((a, b) => a - b);
      for (const other of all.slice(from, to + 1)) other.checked = box.checked;
    }
    lastTicked = box;
  }
  const every = event.target.closest("[data-bulk-all]");
  if (every) for (const other of boxes()) other.checked = every.checked;
  if (event.target.closest("[data-bulk-clear]")) for (const other of boxes()) other.checked = false;
  refreshBar();
});
form.addEventListener("html:shown", refreshBar);

const rows = () => [...form.querySelectorAll("tbody tr")];
function step(by) {
  const all = rows();
  const at = all.findIndex((row) => row.contains(document.activeElement));
  all[Math.max(0, Math.min(all.length - 1, at + by))]?.querySelector("a.title")?.focus();
}
bind("j", "Next experiment", () => step(1), "Experiments");
bind("k", "Previous experiment", () => step(-1), "Experiments");
bind("c", "Compare the selected", () => form.querySelector("[data-bulk-compare]:not(.disabled)")?.click(), "Experiments");
bind("x", "Select for bulk actions", () => document.activeElement.closest("tr")?.querySelector("input[name=id]")?.click(), "Experiments");
