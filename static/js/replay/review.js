// One entry of a review: its turns are played, and a key gives the person's label.
import { bind } from "../lib/keyboard_shortcuts.js";
import { EntryPlayer } from "./entry_player.js";

const root = document.getElementById("review");
const player = new EntryPlayer(root, () => {});
player.show(JSON.parse(document.getElementById("review-entry").textContent));

const buttons = { back: () => player.back(), forward: () => player.forward(), play: () => player.play() };
const press = (verdict) => () => root.querySelector(`[name="verdict"][value="${verdict}"]`).click();
bind("a", "Accept", press("accepted"), "Label");
bind("r", "Reject", press("rejected"), "Label");
bind("g", "Gold", press("gold"), "Label");
bind("z", "Take back your last label", () => root.querySelector("[data-undo]")?.click(), "Label");
bind("j", "Next turn", buttons.forward, "Watch");
bind("k", "Previous turn", buttons.back, "Watch");
bind(" ", "Play from the first turn", buttons.play, "Watch");
root.addEventListener("click", ({ target }) => {
  const { dataset } = target.closest("[data-do], [data-cell]") ?? {};
  if (dataset?.do) buttons[dataset.do]();
  else if (dataset?.cell) player.goTo(Number(dataset.cell));
});
