// The viewer's keyboard, buttons and URL: each changes the player's state.
import { bind } from "../lib/keyboard_shortcuts.js";
import * as player from "./player_state.js";

const WATCH = "Watch";
const GROUP = "Group";

export function positionFromHash() {
  const found = /turn=(\d+)/.exec(location.hash);
  return found ? Number(found[1]) - 1 : null;
}

// `read()` answers the state, `update(state)` shows another one.
export function startControls(root, { read, update, lane }) {
  const turnHash = () => `#turn=${Math.min(read().position + 1, Math.max(1, read().turns.length))}`;
  const goTo = (next) => {
    update(next);
    history.replaceState(null, "", turnHash());
  };
  const toggleOverlay = () => {
    const isOff = root.classList.toggle("is-overlay-off");
    root.querySelector('[data-do="overlay"]').setAttribute("aria-pressed", String(!isOff));
  };
  const toggleTokens = () => {
    const isOn = root.classList.toggle("is-tokens-on");
    localStorage.setItem("deskhand-tokens", isOn ? "1" : "");
    update(read());
  };
  const openSibling = (delta) => {
    const url = lane.urlOfSibling(delta);
    if (url) location.assign(`${url}${turnHash()}`);
  };
  const openGroup = (url) => url && location.assign(url);
  const actions = {
    home: () => goTo(player.goTo({ ...read(), isPlaying: false }, 0)),
    back: () => goTo(player.stepBy(read(), -1)),
    forward: () => goTo(player.stepBy(read(), 1)),
    play: () => update(player.togglePlay(read())),
    live: () => goTo(player.jumpToLive(read())),
    overlay: toggleOverlay,
    tokens: toggleTokens,
  };

  bind("j", "Next turn", actions.forward, WATCH);
  bind("k", "Previous turn", actions.back, WATCH);
  bind("J", "Five turns forward", () => goTo(player.stepBy(read(), 5)), WATCH);
  bind("K", "Five turns back", () => goTo(player.stepBy(read(), -5)), WATCH);
  bind(" ", "Play or pause", actions.play, WATCH);
  bind("Home", "First turn", actions.home, WATCH);
  bind("End", "Last turn; live while it runs", actions.live, WATCH);
  for (const [key, speed] of Object.entries(player.SPEEDS)) {
    bind(key, `${speed} turn${speed === 1 ? "" : "s"} per second`, () => update(player.setSpeed(read(), Number(key))), WATCH);
  }
  bind("o", "Show or hide the action on the screen", toggleOverlay, WATCH);
  bind("t", "Tokens coloured by probability", toggleTokens, WATCH);
  bind("T", "Go to the least certain token", () => root.querySelector("[data-card]:not([hidden]) [data-least]:not([hidden])")?.click(), WATCH);
  bind("v", "Watch the desktop itself, take it over", () => root.querySelector("[data-desktop]")?.click(), WATCH);
  bind("h", "Previous sibling", () => openSibling(-1), GROUP);
  bind("l", "Next sibling", () => openSibling(1), GROUP);
  bind("[", "Previous group", () => openGroup(root.dataset.previousGroup), GROUP);
  bind("]", "Next group", () => openGroup(root.dataset.nextGroup), GROUP);

  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (button) return actions[button.dataset.do]?.();
    const speed = event.target.closest("[data-speed]");
    if (speed) return update(player.setSpeed(read(), Number(speed.dataset.speed)));
    const key = event.target.closest("[data-cell]")?.dataset.cell;
    if (!key) return;
    const { turns } = read();
    const place = key === "end" ? turns.length : turns.findIndex((turn) => String(turn.index) === key);
    goTo(player.goTo({ ...read(), isPlaying: false }, place));
  });
  window.addEventListener("hashchange", () => {
    const position = positionFromHash();
    if (position !== null) update(player.goTo(read(), position));
  });
  if (localStorage.getItem("deskhand-tokens")) root.classList.add("is-tokens-on");
}
