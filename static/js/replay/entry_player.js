// The shown entry's turns: its screens played and stepped, the filmstrip below them.
import { frameUrl } from "../lib/frame_images.js";
import { make } from "../lib/dom.js";
import * as player from "../trajectories/player_state.js";
import { describeTurn, TurnScreen } from "../trajectories/turn_screen.js";

const SPEED = 3; // key of player.SPEEDS

export class EntryPlayer {
  // `painted(id)`: the entry's screen can be seen.
  constructor(root, painted) {
    this.root = root;
    this.painted = painted;
    this.screen = new TurnScreen(root.querySelector("[data-frame]"));
    this.strip = root.querySelector("[data-filmstrip]");
    this.state = player.newPlayer({ isFinal: true });
    this.entry = null;
    this.timer = 0;
  }

  // Shows the last screen; the filmstrip follows after it, which is what people wait for.
  show(entry) {
    if (entry.id === this.entry?.id) return;
    this.entry = entry;
    const state = player.newPlayer({ turns: entry.turns, isFinal: true, endFrame: entry.endFrame });
    this.update(player.goTo({ ...state, speed: SPEED }, player.lastPosition(state)));
    requestAnimationFrame(() => setTimeout(() => entry === this.entry && this.drawStrip()));
  }

  back() {
    this.update(player.stepBy(this.state, -1));
  }

  forward() {
    this.update(player.stepBy(this.state, 1));
  }

  play() {
    this.update(player.togglePlay(this.state));
  }

  goTo(position) {
    this.update(player.goTo({ ...this.state, isPlaying: false }, position));
  }

  update(state) {
    this.state = state;
    const turn = player.currentTurn(state);
    const id = this.entry?.id;
    this.screen.show(turn, () => this.painted(id));
    const { place, caption } = describeTurn(turn, state);
    this.root.querySelector("[data-place]").textContent = place;
    this.root.querySelector("[data-caption]").textContent = (!turn?.parseError && turn?.thought) || caption;
    this.root.classList.toggle("is-playing", state.isPlaying);
    this.selectCell();
    clearTimeout(this.timer);
    if (state.isPlaying) this.timer = setTimeout(() => this.update(player.tick(this.state)), player.tickMs(state));
  }

  drawStrip() {
    const { turns, endFrame } = this.entry;
    const end = endFrame ? [{ ...endFrame, state: "end", isEnd: true }] : [];
    this.strip.replaceChildren(...[...turns, ...end].map(cell));
    this.selectCell();
  }

  selectCell() {
    for (const node of this.strip.children) node.setAttribute("aria-selected", String(Number(node.dataset.cell) === this.state.position));
  }
}

function cell(turn, place) {
  const node = make("button", `cell is-${turn.state}`);
  node.type = "button";
  node.setAttribute("role", "option");
  node.dataset.cell = place;
  const image = make("span", "cell-image");
  if (turn.frame) image.append(Object.assign(new Image(), { src: frameUrl(turn.frame, "thumb.jpg"), alt: "" }));
  const foot = make("span", "cell-foot");
  foot.append(make("b", "", turn.isEnd ? "End" : String(turn.index + 1)), make("span", "", turn.parseError ? "Not parsed" : (turn.caption ?? "")));
  node.append(image, make("span", "cell-bar"), foot);
  return node;
}
