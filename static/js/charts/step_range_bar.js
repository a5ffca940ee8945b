// The bar below the charts: what a chosen step or range of steps leads to.
export class StepRangeBar {
  constructor(bar, zoom) {
    this.bar = bar;
    this.zoom = zoom;
    bar.addEventListener("click", ({ target }) => {
      if (target.closest("[data-range-zoom]")) this.zoom(this.range);
      if (target.closest("[data-range-clear]")) this.clear();
    });
  }

  show(first, last) {
    this.range = [first, last];
    this.bar.hidden = false;
    this.bar.querySelector("[data-range-words]").textContent = first === last ? `Step ${first}` : `Steps ${first} to ${last}`;
    this.bar.querySelector("[data-range-zoom]").hidden = first === last;
    for (const link of this.bar.querySelectorAll("a[data-base]")) link.href = `${link.dataset.base}&step=${first === last ? first : `${first}-${last}`}`;
  }

  clear() {
    this.range = null;
    this.bar.hidden = true;
    this.zoom(null);
  }
}
