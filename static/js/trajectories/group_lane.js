// The rows of a trajectory's group below the viewer: the watched turn is marked, siblings are one key away.
// Of long trajectories it holds the turns around the watched one only, and fetches others when it gets there.
import { refreshPart } from "../lib/live_parts.js";

const NUM_SHOWN = 48; // as webapp/trajectories/queries/trajectories.py
const BEFORE = 12; // turns that are shown before the one that was just reached

export class GroupLane {
  // `currentPlace()` tells the watched turn as { key, position }.
  constructor(holder, currentPlace) {
    this.holder = holder;
    this.currentPlace = currentPlace;
    this.isCentred = false;
    holder.addEventListener("html:shown", () => {
      this.mark();
      if (!this.isCentred) this.centre();
    });
  }

  mark() {
    const rows = this.holder.querySelector(".lane-rows");
    if (!rows) return;
    const { key, position } = this.currentPlace();
    const turn = key === "end" ? position - 1 : position;
    const first = Number(rows.dataset.first);
    for (const old of rows.querySelectorAll(".is-current")) old.classList.remove("is-current");
    rows.querySelectorAll(".lane-row.is-watched .lane-cell")[turn - first]?.classList.add("is-current");
    const isOutside = turn < first || turn >= first + NUM_SHOWN;
    if (isOutside && turn < Number(rows.dataset.numColumns)) this.fetchFrom(Math.max(0, turn - BEFORE));
  }

  fetchFrom(first) {
    const url = new URL(this.holder.dataset.partUrl, location.href);
    url.searchParams.set("first", first);
    this.holder.dataset.partUrl = `${url.pathname}${url.search}`;
    refreshPart(this.holder);
  }

  // The watched row in the middle, without moving the page.
  centre() {
    const rows = this.holder.querySelector(".lane-rows");
    const row = rows?.querySelector(".is-watched");
    if (!row) return;
    this.isCentred = true;
    rows.scrollTop = row.offsetTop - rows.offsetTop - (rows.clientHeight - row.offsetHeight) / 2;
  }

  // The URL of the sibling `delta` rows below, without its turn; undefined when there is none.
  urlOfSibling(delta) {
    const rows = [...this.holder.querySelectorAll("[data-sibling]")];
    const here = rows.findIndex((row) => row.classList.contains("is-watched"));
    return rows[here + delta]?.querySelector("[data-sibling-link]")?.getAttribute("href").split("#")[0];
  }
}
