// What a person has chosen for the charts: smoothing, markers, logarithmic and pinned ones. Kept in the browser.
const KEY = "deskhand-charts";
const DEFAULTS = { smoothing: 0, hidden: [], log: [], pinned: [] };

export class ChartChoices {
  constructor(changed) {
    this.changed = changed;
    this.values = { ...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
  }

  get smoothing() {
    return this.values.smoothing;
  }

  has(list, name) {
    return this.values[list].includes(name);
  }

  set(name, value) {
    this.values[name] = value;
    localStorage.setItem(KEY, JSON.stringify(this.values));
    this.changed();
  }

  toggle(list, name) {
    const others = this.values[list].filter((other) => other !== name);
    this.set(list, this.has(list, name) ? others : [...others, name]);
  }

  // The controls above the charts: a select of smoothing, and a button per kind of marker.
  wire(bar) {
    const smoothing = bar.querySelector("[data-smoothing]");
    smoothing.value = String(this.smoothing);
    smoothing.addEventListener("change", () => this.set("smoothing", Number(smoothing.value)));
    for (const button of bar.querySelectorAll("[data-marker-kind]")) {
      const show = () => button.setAttribute("aria-pressed", String(!this.has("hidden", button.dataset.markerKind)));
      button.addEventListener("click", () => {
        this.toggle("hidden", button.dataset.markerKind);
        show();
      });
      show();
    }
  }
}
