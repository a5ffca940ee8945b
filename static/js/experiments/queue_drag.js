// The queue: experiments are dragged to another place; the server answers a move with the queue as it is then.
import { postToPart } from "../lib/live_parts.js";

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
  clearMarks();
  row.classList.add(isUpperHalf(event, row) ? "drop-before" : "drop-after");
});
root.addEventListener("dragend", () => {
  dragged?.classList.remove("is-dragged");
  dragged = null;
  clearMarks();
});
root.addEventListener("drop", (event) => {
  const row = rowOf(event.target);
  if (!dragged || !row || row === dragged) return;
  event.preventDefault();
  const before = isUpperHalf(event, row) ? row : row.nextElementSibling;
  postToPart(root, dragged.dataset.moveUrl, { before: before?.dataset.queued ?? "" }).catch(() => {}); // the part shows what is
});

function clearMarks() {
  for (const row of root.querySelectorAll(".drop-before, .drop-after")) row.classList.remove("drop-before", "drop-after");
}

function isUpperHalf(event, row) {
  const box = row.getBoundingClientRect();
  return event.clientY < box.top + box.height / 2;
}
