// Parts of a page that the server renders: each is fetched again when an event of its streams concerns it.
//
//   <div data-part="stages" data-part-url="…" data-stream="experiment.3" data-on="stage. experiment."
//        data-min-ms="500" data-after="41" data-poll-ms="4000" data-load>
//
// data-on: beginnings of event types; data-min-ms: at most one fetch in that time; data-poll-ms: also
// without events; data-load: fetched at once, since the page came without it. The cursor is the part's own or the first one of its stream on the page. Elements inside
// that have data-follow="trajectory.7" (and data-after) add their streams: every event of those counts.
// A form[data-updates-part] inside is sent by a request, whose answer is the part's new content.
import { onState, subscribe } from "./live_events.js";
import { Refresher } from "./refresher.js";
import { getHtml, postForm, Refused } from "./requests.js";
import { showHtml } from "./server_html.js";

const MIN_MS = 800;

class Part {
  constructor(element) {
    this.element = element;
    this.followed = new Map(); // stream -> how to leave it
    this.refresher = new Refresher(() => this.refresh(), {
      minMs: Number(element.dataset.minMs) || MIN_MS,
      failed: () => element.classList.add("is-stale"),
    });
    this.follow();
    const everyMs = Number(element.dataset.pollMs);
    if (everyMs) setInterval(() => this.refresher.soon(), everyMs);
    if ("load" in element.dataset) this.refresher.soon();
  }

  concerns(type) {
    return type === "stream.reset" || (this.element.dataset.on ?? "").split(" ").some((start) => start && type.startsWith(start));
  }

  async refresh() {
    this.show(await getHtml(this.element.dataset.partUrl));
  }

  show(html) {
    showHtml(this.element, html);
    this.element.classList.remove("is-stale");
    this.follow();
  }

  follow() {
    const rows = new Map([...this.element.querySelectorAll("[data-follow]")].map((row) => [row.dataset.follow, row.dataset.after]));
    for (const [stream, leave] of this.followed) {
      if (rows.has(stream)) continue;
      leave();
      this.followed.delete(stream);
    }
    for (const [stream, after] of rows) {
      if (!this.followed.has(stream)) this.followed.set(stream, subscribe(stream, after, () => this.refresher.soon()));
    }
  }
}

const parts = new Map();

// Fetches a part again, after its data-part-url has changed.
export const refreshPart = (element) => parts.get(element)?.refresher.soon();

// Shows the answer of a request in the part that `element` belongs to.
export async function postToPart(element, url, fields) {
  const part = parts.get(element.closest("[data-part]"));
  try {
    part.show(await (await postForm(url, fields)).text());
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    part.refresher.soon();
    throw error;
  }
}

async function sendForm(form) {
  try {
    await postToPart(form, form.action, new FormData(form));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const field = form.querySelector("input:not([type=hidden])") ?? form.querySelector("button");
    field.setCustomValidity(error.message);
    field.reportValidity();
    field.addEventListener("input", () => field.setCustomValidity(""), { once: true });
  }
}

export function startParts() {
  for (const element of document.querySelectorAll("[data-part]")) parts.set(element, new Part(element));
  const cursors = new Map();
  for (const { dataset } of document.querySelectorAll("[data-stream][data-after]")) {
    if (!cursors.has(dataset.stream)) cursors.set(dataset.stream, dataset.after);
  }
  for (const [{ dataset }, part] of parts) {
    if (!dataset.stream) continue;
    subscribe(dataset.stream, cursors.get(dataset.stream), ({ type }) => part.concerns(type) && part.refresher.soon());
  }
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || !event.target.matches("form[data-updates-part]")) return;
    event.preventDefault();
    sendForm(event.target);
  });
  onState((state) => document.body.classList.toggle("is-reconnecting", state === "reconnecting"));
}
