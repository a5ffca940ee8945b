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
      const { tokens, next, left } = await getJson(this.urlOf(card, `from=${more?.dataset.from ?? 0}`));
      more?.remove();
      insertHtml(holder, tokens);
      if (next !== null) holder.append(moreButton(next, left));
    } finally {
      delete holder.dataset.busy;
    }
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

function moreButton(next, left) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm";
  button.dataset.do = "more-tokens";
  button.dataset.from = next;
  button.textContent = `${left} more tokens`;
  return button;
}
