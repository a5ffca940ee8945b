// Keeps the next entries and their screens at hand, so that a label shows the next one at once.
import { prefetch } from "../lib/frame_images.js";
import { getJson, Refused } from "../lib/requests.js";
import * as labelling from "./labelling_state.js";

const FEW_LEFT = 20; // rows of the queue; then the next ones are fetched
const OTHER_TURNS_MS = 150; // the label goes out first, then the entry's other screens are fetched
const MAX_OTHER_TURNS = 12;

const wantsRows = (state) => state.hasMore && state.order.length - state.position < FEW_LEFT;

// What the server is asked for beside a label: entries by id, and rows of the queue.
export function wanted(state) {
  const more = wantsRows(state) ? { before: String(Math.min(...state.order)) } : {};
  return { ids: labelling.lacking(state).join(","), ...more };
}

export class EntryLoader {
  // `read()` answers the state; `take(answer, gone)` takes what came, and the ids that are no more.
  constructor({ url, query, read, take }) {
    Object.assign(this, { url, query, read, take });
    this.timer = 0;
    this.isFetching = false;
  }

  // The last frame of the next entries first, then the current one's other turns.
  prefetchScreens() {
    const { order, position, known } = this.read();
    const entries = order.slice(position + 1, position + 1 + labelling.AHEAD).map((id) => known.get(id)).filter((entry) => entry?.turns);
    prefetch(entries.map((entry) => entry.endFrame?.frame ?? entry.turns.at(-1)?.frame).filter(Boolean));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const turns = labelling.currentEntry(this.read())?.turns ?? [];
      prefetch(turns.slice(-MAX_OTHER_TURNS).map((turn) => turn.frame).filter(Boolean));
    }, OTHER_TURNS_MS);
  }

  async fetchLacking() {
    if (this.isFetching) return;
    this.isFetching = true;
    try {
      while (labelling.lacking(this.read()).length || wantsRows(this.read())) {
        const asked = wanted(this.read());
        const answer = await getJson(`${this.url}?${this.query}&${new URLSearchParams(asked)}`);
        const found = answer.entries.map((entry) => entry.id);
        this.take(answer, asked.ids.split(",").filter(Boolean).map(Number).filter((id) => !found.includes(id)));
      }
    } catch (error) {
      ignoreRefusal(error);
    } finally {
      this.isFetching = false;
    }
  }

  fetchAgain(id) {
    return getJson(`${this.url}?ids=${id}`).then((answer) => this.take(answer, []), ignoreRefusal);
  }
}

// The next key asks again.
function ignoreRefusal(error) {
  if (!(error instanceof Refused)) throw error;
}
