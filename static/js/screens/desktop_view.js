// Draws the page of a live desktop from its state.
import { frameUrl } from "../lib/frame_images.js";
import { hint, standing } from "./desktop_words.js";

const root = document.getElementById("desktop");
const find = (name) => root.querySelector(`[data-${name}]`);

// `page`: as for `standing`, with `note` (said instead of the text) and `isShown(name)` (buttons).
export function drawDesktop(page) {
  const { state, line, note, isDenied, isHeld, isShown } = page;
  const [tone, label, text] = standing(page);
  find("screen-pill").className = `pill tone-${tone}`;
  find("screen-pill").querySelector("[data-label]").textContent = label;
  find("note").textContent = note || text;
  for (const button of root.querySelectorAll("[data-do]")) button.hidden = !isShown(button.dataset.do);
  root.classList.toggle("is-mine", isHeld);
  root.classList.toggle("is-watching", !isHeld);
  find("count").textContent = state.numTurns;
  find("foot").textContent = hint({ state, isHeld, mayTake: isShown("take"), hasFocus: root.classList.contains("has-focus") });
  const isSlideshow = Boolean(state.noScreen && state.lastFrame) && !state.isFinal && !isDenied;
  showStill(state, isSlideshow);
  drawVeil(page, { label, text, isSlideshow });
  root.dataset.screen = isDenied ? "denied" : state.isFinal ? "ended" : isSlideshow ? "stills" : isHeld && line === "live" ? "control" : line;
}

// Instead of a live screen: the last screenshot, a new one with each turn.
function showStill(state, isSlideshow) {
  const still = find("still");
  still.hidden = !isSlideshow;
  if (!isSlideshow || still.dataset.frame === state.lastFrame) return;
  still.dataset.frame = state.lastFrame;
  still.src = frameUrl(state.lastFrame, "png");
  still.alt = `Screenshot of turn ${state.numTurns}`;
}

function drawVeil({ state, line, isDenied }, { label, text, isSlideshow }) {
  const veil = find("veil");
  veil.hidden = isSlideshow || (line === "live" && state.hasScreen && !state.isFinal && !isDenied);
  const hasLast = state.isFinal && Boolean(state.lastFrame);
  veil.classList.toggle("has-last", hasLast);
  if (hasLast) veil.style.setProperty("--last", `url("${frameUrl(state.lastFrame, "jpg")}")`);
  find("veil-title").textContent = label;
  find("veil-text").textContent = text;
  find("spinner").hidden = state.isFinal || isDenied || (!state.hasScreen && state.status === "running");
  find("veil-link").hidden = !state.isFinal;
}
