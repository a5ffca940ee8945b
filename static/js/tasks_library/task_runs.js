// Scripted runs of a task end within seconds: what is shown is asked for again while any is under way.
import { getHtml, Refused } from "../lib/requests.js";
import { showHtml } from "../lib/server_html.js";

const PAUSE_MS = 1500;

export async function look(holder) {
  if (!holder.querySelector("[data-running]")) return;
  try {
    showHtml(holder, await getHtml(holder.dataset.runs));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
  setTimeout(look, PAUSE_MS, holder);
}

for (const holder of document.querySelectorAll("[data-runs]")) setTimeout(look, PAUSE_MS, holder);
