// What the page of a live desktop says about its state, in words.
import { fixed } from "../lib/numbers.js";

// What the page says: [tone, label, text]. `page`: { state, line, why, isDenied, isElsewhere, isMine, isHeld, isDemonstration }.
export function standing(page) {
  const { state, line, isDemonstration } = page;
  if (page.isDenied) return ["bad", "Not allowed", "You may not use this desktop any more."];
  if (state.isFinal) return ["neutral", "Ended", ending(page)];
  if (state.status === "evaluating") return ["info", "Evaluating", "The task's evaluator looks at the desktop."];
  if (state.noScreen && !["queued", "parked"].includes(state.status)) return ["neutral", "Screenshots", state.noScreen];
  if (!state.hasScreen) return ["info", "Waiting", waiting(state)];
  if (line === "reconnecting") return ["warning", "Reconnecting", page.why ? unreached(page.why) : "The connection broke; nothing is lost."];
  if (line !== "live") return ["neutral", "Connecting", page.why ? unreached(page.why) : ""];
  if (page.isElsewhere) return ["warning", "In another tab", "You control this desktop in another tab."];
  if (page.isHeld && state.draft) return ["active", "You control", state.draft === "arranging" ? "Arrange the desktop, then press Start here." : "Do the task once, then press Done."];
  if (page.isHeld) return ["active", "You control", isDemonstration ? "Do the task; what you do is recorded." : "The agent is paused; what you do is recorded."];
  if (page.isWatch) return ["warning", "The agent waits", "Take over, or let it go on; after a minute it does by itself."];
  if (page.isMine) return ["warning", "Pausing the agent", "It finishes its turn first."];
  if (state.control) return ["warning", `Taken by ${state.controller}`, "You watch."];
  return ["good", "Live", state.source === "human" ? "The agent acts again; this trajectory is no policy sample." : "The agent acts, you watch."];
}

function unreached(why) {
  return `${why[0].toUpperCase()}${why.slice(1)}. It is tried again.`;
}

function waiting(state) {
  if (state.status === "parked") return "The provider has no free desktop at this moment; we ask again.";
  if (state.status === "resetting") return "The desktop is being prepared for the task.";
  if (state.isSilent) return "Its env worker has not reported for some seconds; the screen comes back with it.";
  if (state.status !== "queued") return "This desktop has no live screen.";
  if (!state.numAhead) return "A desktop is on its way.";
  return `A desktop becomes free soon: ${state.numAhead} ${state.numAhead === 1 ? "trajectory is" : "trajectories are"} running.`;
}

function ending({ state, isDemonstration }) {
  if (state.status === "errored") return state.errorText || "It ended with an error and was not scored.";
  if (state.draft === "done") return "The task is proposed from what you did.";
  if (state.status === "cancelled") return isDemonstration ? "The recording was discarded." : "It was cancelled.";
  const offered = state.score >= 0.5 && state.source === "human" ? " It waits in the replay inbox." : "";
  return `The evaluator gave ${fixed(Number(state.score ?? 0))} of 1.${offered}`;
}

// The line below the screen.
export function hint({ state, isHeld, mayTake, hasFocus }) {
  if (state.noScreen && state.lastFrame && !state.isFinal) return `The screenshot of turn ${state.numTurns}; the next one comes with the next turn.`;
  if (isHeld && hasFocus) return "The keyboard is in the desktop; Shift + Escape brings it back to this page.";
  if (isHeld) return "Click the desktop to type into it. Press f to finish, b to hand it back.";
  return mayTake ? "Press c to pause the agent and use this desktop yourself." : "";
}
