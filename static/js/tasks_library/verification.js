// Verification runs of a task end within seconds: what is shown is asked for again while any is under way.
import { getHtml, Refused } from "../lib/requests.js";
import { showHtml } from "../lib/server_html.js";

const PAUSE_MS = 1500;
const holder = document.querySelector("[data-verification]");

async function look() {
  if (!holder.querySelector("[data-running]")) return;
  try {
    showHtml(holder, await getHtml(holder.dataset.verification));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
  setTimeout(look, PAUSE_MS);
}

if (holder) setTimeout(look, PAUSE_MS);
