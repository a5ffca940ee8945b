// Parts of a page that the server draws: each is fetched again when an event of its stream concerns it.
//
//   <div data-part="stages" data-part-url="…" data-stream="experiment.3" data-on="stage. experiment."
//        data-min-ms="500" data-after="41" data-poll-ms="4000">
//
// data-on: beginnings of event types; data-min-ms: at most one fetch in that time; data-poll-ms: also
// without events. The cursor is the part's own or the first one of its stream on the page.
import { onState, subscribe } from "./live.js";
import { morphInto } from "./morph.js";
import { refreshTimes } from "./times.js";

const MIN_MS = 800;
const RETRY_MS = 3000;

class Part {
  constructor(element) {
    this.element = element;
    this.minMs = Number(element.dataset.minMs) || MIN_MS;
    this.lastMs = 0;
    this.isDirty = false;
    this.isBusy = false;
    this.timer = 0;
  }

  concerns(type) {
    return type === "stream.reset" || (this.element.dataset.on ?? "").split(" ").some((start) => start && type.startsWith(start));
  }

  refreshSoon() {
    this.isDirty = true;
    if (this.isBusy || this.timer || document.hidden) return;
    const wait = Math.max(0, this.lastMs + this.minMs - performance.now());
    this.timer = setTimeout(() => this.refresh(), wait);
  }

  async refresh() {
    this.timer = 0;
    this.isDirty = false;
    this.isBusy = true;
    try {
      const response = await fetch(this.element.dataset.partUrl, { headers: { "x-part": "1" } });
      if (response.redirected) return location.reload(); // signed out meanwhile
      if (!response.ok) throw new Error(String(response.status));
      morphInto(this.element, await response.text());
      refreshTimes(this.element);
      window.htmx?.process(this.element);
      this.element.dispatchEvent(new CustomEvent("part:drawn", { bubbles: true }));
      this.element.classList.remove("is-stale");
    } catch {
      this.element.classList.add("is-stale");
      this.isDirty = true;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
    this.lastMs = performance.now();
    this.isBusy = false;
    if (this.isDirty) this.refreshSoon();
  }
}

export function startParts() {
  const parts = [...document.querySelectorAll("[data-part]")].map((element) => new Part(element));
  const cursors = new Map();
  for (const element of document.querySelectorAll("[data-stream][data-after]")) {
    if (!cursors.has(element.dataset.stream)) cursors.set(element.dataset.stream, element.dataset.after);
  }
  for (const stream of new Set(parts.map((part) => part.element.dataset.stream).filter(Boolean))) {
    const mine = parts.filter((part) => part.element.dataset.stream === stream);
    subscribe(stream, cursors.get(stream), (event) => {
      for (const part of mine) if (part.concerns(event.type)) part.refreshSoon();
    });
  }
  for (const part of parts) {
    const everyMs = Number(part.element.dataset.pollMs);
    if (everyMs) setInterval(() => part.refreshSoon(), everyMs);
  }
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) for (const part of parts) if (part.isDirty) part.refreshSoon();
  });
  onState((state) => document.body.classList.toggle("is-reconnecting", state === "reconnecting"));
  return parts;
}
