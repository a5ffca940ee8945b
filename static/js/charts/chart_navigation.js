// Charts are navigation: a crosshair in all of them at once, a click that chooses a step, a drag that chooses
// several. Plotly's own dragging is off; `choose(first, last)` gets whole steps.
import { make } from "../lib/dom.js";

const CLICK_PX = 4;

const axisOf = (place) => place._fullLayout?.xaxis;
const leftOf = (place) => place._fullLayout._size.l;

// The value of the axis below the pointer, kept within what the chart shows.
function valueAt(place, event) {
  const axis = axisOf(place);
  const px = event.clientX - place.getBoundingClientRect().left - leftOf(place);
  return axis.p2d(Math.min(axis._length, Math.max(0, px)));
}

export class ChartNavigation {
  constructor(root, choose) {
    this.root = root;
    this.choose = choose;
    this.range = null;
    root.addEventListener("pointermove", (event) => this.from || this.move(event));
    root.addEventListener("pointerleave", () => this.showCrosshair(null));
    root.addEventListener("pointerdown", (event) => this.begin(event));
    // Plotly covers the page while a button is down: what follows does not come to the charts.
    this.follow = { pointermove: (event) => this.move(event), pointerup: (event) => this.end(event), pointercancel: () => this.stop() };
  }

  // Charts with the same steps move together: those of SFT count their own.
  places(stage) {
    return [...this.root.querySelectorAll(`.chart[data-stage="${stage}"] .js-plotly-plot`)].filter(axisOf);
  }

  placeUnder(event) {
    const place = event.target.closest?.(".chart[data-stage] .js-plotly-plot");
    return place && axisOf(place) && event.target.closest(".nsewdrag, .chart-band, .chart-crosshair") ? place : null;
  }

  begin(event) {
    const place = event.button === 0 && this.placeUnder(event);
    if (!place) return;
    this.from = { place, value: valueAt(place, event), px: event.clientX };
    for (const [type, handler] of Object.entries(this.follow)) window.addEventListener(type, handler);
  }

  stop() {
    this.from = null;
    for (const [type, handler] of Object.entries(this.follow)) window.removeEventListener(type, handler);
  }

  move(event) {
    const place = this.from?.place ?? this.placeUnder(event);
    this.showCrosshair(place && { stage: place.closest(".chart").dataset.stage, value: valueAt(place, event) });
    if (this.from && Math.abs(event.clientX - this.from.px) > CLICK_PX) this.setRange(...this.stepsUntil(event));
  }

  end(event) {
    const isClick = Math.abs(event.clientX - this.from.px) <= CLICK_PX;
    const at = Math.round(this.from.value);
    this.setRange(...(isClick ? [at, at] : this.stepsUntil(event)));
    this.stop();
    this.choose(...this.range);
  }

  stepsUntil(event) {
    const values = [this.from.value, valueAt(this.from.place, event)];
    return [Math.ceil(Math.min(...values)), Math.max(Math.ceil(Math.min(...values)), Math.floor(Math.max(...values)))];
  }

  setRange(first, last) {
    this.stage = this.from?.place.closest(".chart").dataset.stage ?? this.stage;
    this.range = first === null ? null : [Math.max(0, first), Math.max(0, last)];
    this.showRange();
  }

  clear() {
    this.setRange(null);
  }

  showRange() {
    for (const band of this.root.querySelectorAll(".chart-band")) band.hidden = true;
    if (!this.range) return;
    const [first, last] = this.range;
    for (const place of this.places(this.stage)) {
      const [left, right] = [first, last].map((step) => axisOf(place).d2p(step));
      this.overlay(place, "chart-band", Math.max(0, left - 1), Math.min(axisOf(place)._length, right + 1));
    }
  }

  showCrosshair(at) {
    for (const line of this.root.querySelectorAll(".chart-crosshair")) line.hidden = true;
    if (!at) return;
    for (const place of this.places(at.stage)) {
      const px = axisOf(place).d2p(at.value);
      if (px >= 0 && px <= axisOf(place)._length) this.overlay(place, "chart-crosshair", px, px + 1);
    }
  }

  overlay(place, name, left, right) {
    let node = place.querySelector(`:scope > .${name}`);
    if (!node) {
      node = make("i", name);
      place.append(node);
    }
    const { l, t, h } = place._fullLayout._size;
    Object.assign(node.style, { left: `${l + left}px`, width: `${Math.max(1, right - left)}px`, top: `${t}px`, height: `${h}px` });
    node.hidden = right < left;
  }
}
