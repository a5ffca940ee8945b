// New entries of the replay inbox: counted at once, shown on request, so that the queue does not move under people.
import { subscribe } from "../lib/live_events.js";

const root = document.getElementById("curate");
const pill = root.querySelector("[data-arrivals]");
const inboxCount = root.querySelector("[data-count=inbox]");
const isEmptyInbox = root.classList.contains("is-empty") && !root.dataset.query;
let numNew = 0;

subscribe(root.dataset.stream, root.dataset.after, ({ type }) => {
  if (type !== "entry.offered" && type !== "stream.reset") return;
  if (isEmptyInbox) return location.reload();
  numNew += 1;
  if (inboxCount) inboxCount.textContent = String(Number(inboxCount.textContent) + 1);
  pill.querySelector("span").textContent = `${numNew} new`;
  pill.hidden = false;
});
