// What a turn's card leaves out until it is wanted: the tokens of its completion, and the rest of long texts.
import { getJson } from "../lib/requests.js";
import { insertHtml } from "../lib/server_html.js";

export class TurnTexts {
  constructor(turnsUrl) {
    this.turnsUrl = turnsUrl;
  }

  urlOf(card, query) {
    return `${this.turnsUrl}${card.dataset.card}/completion/?${query}`;
  }

  // The first tokens of a card that has none yet, or the next ones.
  async showTokens(card, { isMore = false } = {}) {
    const holder = card.querySelector("[data-tokens]");
    if (!holder || "busy" in holder.dataset || (holder.childElementCount && !isMore)) return;
    holder.dataset.busy = "";
    try {
      const more = holder.querySelector("[data-do]");
      const { tokens, next, left, least } = await getJson(this.urlOf(card, `from=${more?.dataset.from ?? 0}`));
      more?.remove();
      insertHtml(holder, tokens);
      if (least) showLeast(card, least);
      if (next !== null) holder.append(moreButton(next, left));
    } finally {
      delete holder.dataset.busy;
    }
  }

  // Scrolls to the token with the lowest probability, and fetches the tokens up to it.
  async goToLeast(card) {
    const { place } = card.querySelector("[data-least]").dataset;
    const find = () => card.querySelector(`[data-token="${place}"]`);
    while (!find() && card.querySelector("[data-tokens] [data-do]")) await this.showTokens(card, { isMore: true });
    card.querySelector(".is-found")?.classList.remove("is-found");
    find()?.classList.add("is-found");
    find()?.scrollIntoView({ block: "nearest" });
    find()?.focus({ preventScroll: true });
  }

  async showWhole(card) {
    const { texts } = await getJson(this.urlOf(card, "texts=1"));
    for (const [name, text] of Object.entries(texts)) {
      const place = card.querySelector(`[data-text="${name}"]`);
      if (place) place.textContent = text;
    }
    card.querySelector('[data-do="whole"]')?.remove();
  }
}

function showLeast(card, { place, text, probability }) {
  const button = card.querySelector("[data-least]");
  button.dataset.place = place;
  button.textContent = `Least certain: “${text.trim() || text}” ${probability}`;
  button.hidden = false;
}

function moreButton(next, left) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm";
  button.dataset.do = "more-tokens";
  button.dataset.from = next;
  button.textContent = `${left} more tokens`;
  return button;
}
