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

  // Cells of turns of which the page knows screen and colour only; the server's take their place.
  fill(turns) {
    const cells = document.createDocumentFragment();
    cells.append(...turns.map(briefCell));
    this.strip.insertBefore(cells, this.strip.querySelector('[data-cell="end"]'));
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

function briefCell({ index, frame, state }) {
  const cell = document.createElement("button");
  cell.type = "button";
  cell.className = `cell is-${state}`;
  cell.dataset.cell = index;
  cell.title = `Turn ${index + 1}`;
  cell.setAttribute("role", "option");
  cell.setAttribute("aria-selected", "false");
  const [image, bar, foot, number] = ["span", "span", "span", "b"].map((name) => document.createElement(name));
  image.className = "cell-image";
  bar.className = "cell-bar";
  foot.className = "cell-foot";
  number.textContent = index + 1;
  if (frame) {
    const picture = new Image();
    picture.loading = "lazy";
    picture.decoding = "async";
    picture.alt = "";
    picture.src = `/frames/${frame}.thumb.jpg`;
    image.append(picture);
  }
  foot.append(number);
  cell.append(image, bar, foot);
  return cell;
}
