// The queue: live rows and drag to reorder. The server answers a move with the redrawn queue.
import { showPill } from "./lib/live.js";
import { morphInto } from "./lib/morph.js";
import { startParts } from "./lib/parts.js";

const root = document.getElementById("queue");
let dragged = null;

const rowOf = (target) => target.closest?.("tr[data-queued]");

root.addEventListener("dragstart", (event) => {
  dragged = rowOf(event.target);
  event.dataTransfer.effectAllowed = "move";
  dragged?.classList.add("is-dragged");
});
root.addEventListener("dragover", (event) => {
  const row = rowOf(event.target);
  if (!dragged || !row) return;
  event.preventDefault();
  for (const other of root.querySelectorAll(".drop-before, .drop-after")) other.classList.remove("drop-before", "drop-after");
  row.classList.add(isUpperHalf(event, row) ? "drop-before" : "drop-after");
});
root.addEventListener("dragend", () => {
  dragged?.classList.remove("is-dragged");
  dragged = null;
  for (const other of root.querySelectorAll(".drop-before, .drop-after")) other.classList.remove("drop-before", "drop-after");
});
root.addEventListener("drop", async (event) => {
  const row = rowOf(event.target);
  if (!dragged || !row || row === dragged) return;
  event.preventDefault();
  const before = isUpperHalf(event, row) ? row : row.nextElementSibling;
  const body = new URLSearchParams({ before: before?.dataset.queued ?? "" });
  const headers = JSON.parse(document.body.getAttribute("hx-headers"));
  const response = await fetch(`/experiments/${dragged.dataset.queued}/move/`, { method: "POST", body, headers });
  if (response.ok) morphInto(root, await response.text());
  window.htmx?.process(root);
});

function isUpperHalf(event, row) {
  const box = row.getBoundingClientRect();
  return event.clientY < box.top + box.height / 2;
}

showPill();
startParts();
