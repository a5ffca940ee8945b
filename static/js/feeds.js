// What the viewer fetches from the server after an event: turns with their HTML, and the group lane.

const TURN_RETRY_MS = 1000;
const LANE_PAUSE_MS = 800;

// Fetches wanted turns, one request at a time; a turn wanted again while it is on its way is fetched again.
export class TurnFeed {
  constructor(url, deliver) {
    this.url = url;
    this.deliver = deliver;
    this.wanted = new Set();
    this.isBusy = false;
  }

  want(...indexes) {
    for (const index of indexes) this.wanted.add(index);
    if (!this.isBusy && this.wanted.size) this.run();
  }

  async run() {
    this.isBusy = true;
    while (this.wanted.size) {
      const batch = [...this.wanted].slice(0, 50);
      for (const index of batch) this.wanted.delete(index);
      try {
        const response = await fetch(`${this.url}?indexes=${batch.join(",")}`);
        if (!response.ok) throw new Error(String(response.status));
        this.deliver((await response.json()).turns);
      } catch {
        for (const index of batch) this.wanted.add(index);
        await new Promise((resolve) => setTimeout(resolve, TURN_RETRY_MS));
      }
    }
    this.isBusy = false;
  }
}

// Redraws the lane at most every LANE_PAUSE_MS, and never twice at once.
export class LaneFeed {
  constructor(root, holder, changed) {
    this.url = root.dataset.laneUrl;
    this.holder = holder;
    this.changed = changed;
    this.timer = 0;
    this.isStale = false; // something changed while the page could not be seen, or a redraw was on its way
    document.addEventListener("visibilitychange", () => this.isStale && this.refresh());
  }

  refresh() {
    if (this.timer || document.hidden) return (this.isStale = true);
    this.timer = setTimeout(() => this.run(), LANE_PAUSE_MS);
  }

  async run() {
    this.isStale = false;
    try {
      const response = await fetch(this.url);
      if (response.ok) {
        const scroller = this.holder.querySelector(".lane-rows");
        const top = scroller?.scrollTop ?? 0;
        this.holder.innerHTML = await response.text();
        this.holder.querySelector(".lane-rows").scrollTop = top;
        this.changed();
      }
    } catch {
      this.isStale = true; // offline: the next event, or the second try below
    } finally {
      this.timer = 0;
      if (this.isStale) this.refresh();
    }
  }
}
