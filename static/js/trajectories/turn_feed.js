// Fetches turns that the page wants, one request at a time; a turn wanted again meanwhile is fetched again.
import { Refresher } from "../lib/refresher.js";
import { getJson } from "../lib/requests.js";

const MAX_AT_ONCE = 50;
const RETRY_MS = 1000;

export class TurnFeed {
  constructor(url, deliver) {
    this.url = url;
    this.deliver = deliver;
    this.wanted = new Set();
    this.refresher = new Refresher(() => this.fetchSome(), { minMs: 0, retryMs: RETRY_MS });
  }

  want(...indexes) {
    for (const index of indexes) this.wanted.add(index);
    if (this.wanted.size) this.refresher.soon();
  }

  async fetchSome() {
    const indexes = [...this.wanted].slice(0, MAX_AT_ONCE);
    for (const index of indexes) this.wanted.delete(index);
    try {
      this.deliver((await getJson(`${this.url}?indexes=${indexes.join(",")}`)).turns);
    } catch (error) {
      for (const index of indexes) this.wanted.add(index);
      throw error;
    }
    if (this.wanted.size) this.refresher.soon();
  }
}
