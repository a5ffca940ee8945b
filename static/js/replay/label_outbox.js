// Labels leave one after the other, in the order of the keys that caused them.
import { postJson } from "../lib/requests.js";

export class LabelOutbox {
  constructor() {
    this.tail = Promise.resolve();
    this.numWaiting = 0;
  }

  // Resolves with the answer; rejects with Refused when the server said no or could not be reached.
  post(url, values) {
    this.numWaiting += 1;
    const sent = this.tail.then(() => postJson(url, values));
    this.tail = sent.catch(() => {}).finally(() => (this.numWaiting -= 1));
    return sent;
  }
}
