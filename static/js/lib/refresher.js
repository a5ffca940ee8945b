// Runs a request soon after it is wanted: at most once in `minMs`, never twice at once, not in a hidden tab,
// and again after `retryMs` when the server refused it. A signed-out page is loaded anew.
import { Refused } from "./requests.js";

export class Refresher {
  constructor(run, { minMs = 800, retryMs = 3000, mayRun = () => true, failed = () => {} } = {}) {
    Object.assign(this, { run, minMs, retryMs, mayRun, failed });
    this.lastMs = -Infinity;
    this.timer = 0;
    this.isWanted = false;
    this.isBusy = false;
    document.addEventListener("visibilitychange", () => this.isWanted && this.soon());
  }

  soon() {
    this.isWanted = true;
    if (this.isBusy || this.timer || document.hidden || !this.mayRun()) return;
    this.timer = setTimeout(() => this.go(), Math.max(0, this.lastMs + this.minMs - performance.now()));
  }

  async go() {
    this.timer = 0;
    this.isWanted = false;
    this.isBusy = true;
    try {
      await this.run();
    } catch (error) {
      this.isBusy = error instanceof Refused;
      if (!this.isBusy) throw error;
      if (error.isSignedOut) return location.reload();
      this.isWanted = true;
      this.failed(error);
      await new Promise((resolve) => setTimeout(resolve, this.retryMs));
    }
    this.lastMs = performance.now();
    this.isBusy = false;
    if (this.isWanted) this.soon();
  }
}
