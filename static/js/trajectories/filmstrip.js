// The filmstrip: one cell per turn, the watched one selected and in sight.
import { putHtml } from "../lib/server_html.js";

export class Filmstrip {
  constructor(strip) {
    this.strip = strip;
  }

  // `key`: the turn's index, or "end".
  put(key, html) {
    putHtml(this.strip, "data-cell", key, html);
  }

  select(key, { isScrolling }) {
    for (const cell of this.strip.querySelectorAll('[aria-selected="true"]')) {
      if (cell.dataset.cell !== key) cell.setAttribute("aria-selected", "false");
    }
    const cell = this.strip.querySelector(`[data-cell="${key}"]`);
    cell?.setAttribute("aria-selected", "true");
    if (cell && isScrolling) this.keepInSight(cell);
  }

  keepInSight(cell) {
    const { strip } = this;
    const left = cell.offsetLeft - strip.offsetLeft;
    const isVisible = left >= strip.scrollLeft && left + cell.offsetWidth <= strip.scrollLeft + strip.clientWidth;
    if (!isVisible) strip.scrollLeft = left - strip.clientWidth / 2;
  }
}
