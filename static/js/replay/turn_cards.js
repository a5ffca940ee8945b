// Turns of a trajectory by the keyboard: j and k go from turn to turn, g, b and w mark the current one.
import { bind } from "../lib/keyboard_shortcuts.js";

const list = document.querySelector("[data-turn-cards]");
const cards = [...list.children];
const placeOf = (id) => Math.max(0, cards.findIndex((card) => card.id === id));
let place = placeOf(location.hash.slice(1));

function go(delta) {
  place = Math.max(0, Math.min(cards.length - 1, place + delta));
  for (const card of cards) card.classList.toggle("is-current", card === cards[place]);
  if (!delta) return;
  cards[place].focus({ preventScroll: true });
  cards[place].scrollIntoView({ block: "nearest" });
}

const press = (mark) => () => cards[place]?.querySelector(`[data-mark="${mark}"]`)?.click();
bind("j", "Next turn", () => go(1), "Turns");
bind("k", "Previous turn", () => go(-1), "Turns");
bind("g", "Good", press("good"), "Turns");
bind("b", "Bad", press("bad"), "Turns");
bind("w", "First wrong turn", press("wrong"), "Turns");

// A click on a screen writes its place, in the screen's pixels, into the opened correction beside it.
list.addEventListener("click", (event) => {
  const card = event.target.closest(".turn-card");
  if (!card) return;
  place = cards.indexOf(card);
  go(0);
  const screen = event.target.closest("[data-screen]");
  const field = card.querySelector("details[open] [data-action]");
  const image = screen?.querySelector("img");
  if (!field || !image) return;
  const box = image.getBoundingClientRect();
  const width = Number(screen.dataset.width) || image.naturalWidth;
  const height = Number(screen.dataset.height) || image.naturalHeight;
  const x = Math.min(width - 1, Math.floor(((event.clientX - box.left) / box.width) * width));
  const y = Math.min(height - 1, Math.floor(((event.clientY - box.top) / box.height) * height));
  field.value = `pyautogui.click(${x}, ${y})`;
});
go(0);
