// The screen of one turn with its action drawn on it; the viewer and the replay inbox show turns with it.
import { Screen, showWidth } from "../lib/frame_images.js";
import { drawOverlay } from "./action_overlay.js";

export class TurnScreen {
  constructor(frame) {
    this.frame = frame;
    this.screen = new Screen(frame.querySelector("[data-image]"));
    this.overlay = frame.querySelector("[data-overlay]");
  }

  // Shows nothing for a turn without a frame; calls `painted` once the frame is on the screen.
  show(turn, painted) {
    showWidth(turn?.width);
    if (turn?.width) this.frame.style.setProperty("--ratio", turn.width / turn.height);
    this.screen.show(turn?.frame ?? "", painted);
    drawOverlay(this.overlay, turn);
  }
}

// "Turn 3 of 8", and what it does in a few words.
export function describeTurn(turn, { position, turns }) {
  const place = turn?.isEnd ? "After the last turn" : `Turn ${Math.min(position + 1, turns.length)} of ${turns.length}`;
  if (turn?.isEnd) return { place, caption: "The screen that the evaluator judged" };
  return { place, caption: turn?.parseError ? "Could not be parsed" : (turn?.caption ?? "") };
}
