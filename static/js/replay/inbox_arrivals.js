// New entries of the replay inbox: counted at once, shown on request, so that the queue does not move under people.
import { subscribe } from "../lib/live_events.js";
import { countArrival } from "./inbox_counts.js";

const root = document.getElementById("curate");
const pill = root.querySelector("[data-arrivals]");
const isNarrow = root.hasAttribute("data-narrow"); // then it may not fit the filter
const isEmptyInbox = root.classList.contains("is-empty") && !root.dataset.query;
let numNew = 0;

subscribe(root.dataset.stream, root.dataset.after, ({ type }) => {
  if (type !== "entry.offered" && type !== "stream.reset") return;
  if (isEmptyInbox) return location.reload();
  numNew += 1;
  if (!isNarrow) countArrival();
  pill.querySelector("span").textContent = `${numNew} new`;
  pill.hidden = false;
});
