// All turns in one scroll beside the player, and the words that are searched in them.
import { bind } from "../lib/keyboard_shortcuts.js";

export class Transcript {
  // `changed()` shows the cards anew, with all turns when it is on.
  constructor(root, changed) {
    this.root = root;
    this.cards = root.querySelector("[data-cards]");
    this.field = root.querySelector("[data-transcript-search]");
    this.found = root.querySelector("[data-transcript-found]");
    this.button = root.querySelector('[data-do="transcript"]');
    this.changed = changed;
    this.button.addEventListener("click", () => this.turn(!this.isOn));
    bind("f", "All turns in one scroll", () => this.turn(!this.isOn), "Watch");
    this.field.addEventListener("input", () => (this.field.value && !this.isOn ? this.turn(true) : this.changed()));
  }

  get isOn() {
    return this.root.classList.contains("is-transcript");
  }

  turn(isOn) {
    this.root.classList.toggle("is-transcript", isOn);
    this.button.setAttribute("aria-pressed", String(isOn));
    if (!isOn) this.field.value = "";
    this.changed();
  }

  // Shows the cards that have all words, in the order of turns; the one of `key` is marked and in view.
  show(key) {
    const words = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const cards = [...this.cards.children].filter((card) => card.dataset.card);
    cards.sort((one, other) => placeOf(one) - placeOf(other));
    let number = 0;
    for (const [place, card] of cards.entries()) {
      const fits = words.every((word) => card.textContent.toLowerCase().includes(word));
      card.hidden = !fits;
      number += fits;
      card.classList.toggle("is-here", card.dataset.card === key);
      if (words.length && fits) for (const part of card.querySelectorAll("details")) part.open = words.some((word) => part.textContent.toLowerCase().includes(word));
      if (this.cards.children[place] !== card) this.cards.insertBefore(card, this.cards.children[place]);
    }
    this.found.textContent = words.length ? `${number} turn${number === 1 ? "" : "s"}` : "";
    if (key !== this.shownKey && !words.length) this.cards.querySelector(".is-here")?.scrollIntoView({ block: "nearest" });
    this.shownKey = key;
  }
}

const placeOf = ({ dataset }) => (dataset.card === "end" ? Infinity : Number(dataset.card));
