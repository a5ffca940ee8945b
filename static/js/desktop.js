// The page of a live desktop: watch, take over, hand back, finish. The server's answer to `state` is the truth;
// this page only asks and shows.
import { bind } from "./lib/keys.js";
import { showPill, subscribe } from "./lib/live.js";
import { startParts } from "./lib/parts.js";
import { CODES, LiveScreen } from "./desktop_screen.js";

const POLL_MS = 4000;
const root = document.getElementById("desktop");
const screen = root.querySelector(".screen");
const id = root.dataset.trajectory;
const mayControl = root.dataset.mayControl === "yes";
const isDemonstration = root.dataset.demonstration === "yes";
const csrf = JSON.parse(document.body.getAttribute("hx-headers"))["x-csrftoken"];
let state = JSON.parse(document.getElementById("desktop-state").textContent);
let line = "closed"; // of the screen: connecting, live, reconnecting, closed
let isElsewhere = false; // another tab of the same person has the control
let isDenied = false;
let note = "";
const live = new LiveScreen(root.querySelector("[data-screen]"), `/ws/screens/${id}/`, onLine);

const isMine = () => state.isMine && !isElsewhere;
const isHeld = () => isMine() && state.controlStatus === "held";

function onLine(next, code) {
  line = next;
  if (next === "closed") {
    if (code === CODES.otherTab) isElsewhere = true;
    if (CODES.denied.includes(code)) isDenied = true;
    refresh();
  }
  draw();
}

// The connection that fits the state: with control, without, or none.
function connect() {
  const wanted = isMine() ? state.control : null;
  if (isDenied || !state.hasScreen) return live.close();
  live.allowInput(isHeld());
  if (!live.isOpen && line !== "reconnecting") return live.open(wanted);
  if (live.control !== wanted) live.open(wanted);
}

async function refresh() {
  try {
    const response = await fetch(root.dataset.stateUrl, { headers: { "x-part": "1" } });
    if (response.redirected) return location.reload(); // signed out meanwhile
    if (response.ok) take(await response.json());
  } catch {
    draw(); // the next poll or event asks again
  }
}

function take(next) {
  const wasMine = state.isMine;
  state = next;
  if (!state.isMine) isElsewhere = false;
  if (wasMine && !state.isMine && state.lastControl === "expired") note = "Your control ended because this page was away.";
  connect();
  draw();
}

async function ask(url, body = {}) {
  note = "";
  try {
    const response = await fetch(url, { method: "POST", headers: { "x-csrftoken": csrf }, body: new URLSearchParams(body) });
    const answer = await response.json();
    if (response.ok) return take(answer);
    note = answer.error ?? "The server refused.";
  } catch {
    note = "The server does not answer; try again.";
  }
  refresh();
}

const ACTIONS = {
  take: () => {
    isElsewhere = false;
    ask(root.dataset.takeUrl);
  },
  back: () => ask(`/controls/${state.control}/hand-back/`),
  finish: () => ask(`/controls/${state.control}/finish/`, { claim: "success" }),
  infeasible: () => ask(`/controls/${state.control}/finish/`, { claim: "failure" }),
  fullscreen: () => (document.fullscreenElement ? document.exitFullscreen() : screen.requestFullscreen()),
};

function isShown(name) {
  if (state.isFinal) return name === "fullscreen";
  if (name === "take") return mayControl && (isElsewhere || !state.control) && (state.hasScreen || isDemonstration) && state.status !== "evaluating";
  if (name === "back") return isMine();
  if (name === "finish" || name === "infeasible") return isHeld();
  return true;
}

// --- what people see -------------------------------------------------------------------------------------

function standing() {
  if (isDenied) return ["bad", "Not allowed", "You may not use this desktop any more."];
  if (state.isFinal) return ["neutral", "Ended", ending()];
  if (state.status === "evaluating") return ["info", "Evaluating", "The task's evaluator looks at the desktop."];
  if (state.noScreen && state.status !== "queued" && state.status !== "parked") return ["neutral", "Screenshots", state.noScreen];
  if (!state.hasScreen) return ["info", "Waiting", waiting()];
  if (line === "reconnecting") return ["warning", "Reconnecting", "The line broke; nothing is lost."];
  if (line !== "live") return ["neutral", "Connecting", ""];
  if (isElsewhere) return ["warning", "In another tab", "You control this desktop in another tab."];
  if (isHeld()) return ["active", "You control", isDemonstration ? "Do the task; what you do is recorded." : "The agent is paused; what you do is recorded."];
  if (isMine()) return ["warning", "Pausing the agent", "It finishes its turn first."];
  if (state.control) return ["warning", `Taken by ${state.controller}`, "You watch."];
  return ["good", "Live", state.source === "human" ? "The agent acts again; this trajectory is no policy sample." : "The agent acts, you watch."];
}

function waiting() {
  if (state.status === "parked") return "Whoever lends its desktop has none at this moment; it is asked for again.";
  if (state.status === "resetting") return "The desktop is being prepared for the task.";
  if (state.isSilent) return "Its env worker has not been heard of for some seconds; the screen comes back with it.";
  if (state.status !== "queued") return "This desktop has no live screen.";
  return state.numAhead ? `A desktop becomes free soon: ${state.numAhead} ${state.numAhead === 1 ? "trajectory is" : "trajectories are"} running.` : "A desktop is on its way.";
}

function ending() {
  if (state.status === "errored") return state.errorText || "It ended with an error and was not scored.";
  if (state.status === "cancelled") return isDemonstration ? "The recording was discarded." : "It was cancelled.";
  const solved = state.score >= 0.5;
  const offered = solved && state.source === "human" ? " It waits in the replay inbox." : "";
  return `The evaluator gave ${Number(state.score ?? 0).toFixed(2)} of 1.${offered}`;
}

function draw() {
  const [tone, label, text] = standing();
  const pill = root.querySelector("[data-screen-pill]");
  pill.className = `pill tone-${tone}`;
  pill.querySelector("[data-label]").textContent = label;
  root.querySelector("[data-note]").textContent = note || text;
  for (const button of root.querySelectorAll("[data-do]")) button.hidden = !isShown(button.dataset.do);
  root.classList.toggle("is-mine", isHeld());
  root.classList.toggle("is-watching", !isHeld());
  root.querySelector("[data-count]").textContent = state.numTurns;
  root.querySelector("[data-foot]").textContent = foot();
  const isVeiled = state.isFinal || isDenied || !state.hasScreen || line !== "live";
  const isSlideshow = Boolean(state.noScreen && state.lastFrame) && !state.isFinal && !isDenied;
  const veil = root.querySelector("[data-veil]");
  veil.hidden = !isVeiled || isSlideshow;
  showStill(isSlideshow);
  veil.classList.toggle("has-last", state.isFinal && Boolean(state.lastFrame));
  if (state.isFinal && state.lastFrame) veil.style.setProperty("--last", `url("/frames/${state.lastFrame}.jpg")`);
  root.querySelector("[data-veil-title]").textContent = label;
  root.querySelector("[data-veil-text]").textContent = text;
  root.querySelector("[data-spinner]").hidden = state.isFinal || isDenied || (!state.hasScreen && state.status === "running");
  root.querySelector("[data-veil-link]").hidden = !state.isFinal;
  root.dataset.screen = isDenied ? "denied" : state.isFinal ? "ended" : isSlideshow ? "stills" : isHeld() && line === "live" ? "control" : line;
}

// Instead of a live screen: the last screenshot, a new one with each turn.
function showStill(isShown) {
  const still = root.querySelector("[data-still]");
  still.hidden = !isShown;
  if (!isShown || still.dataset.frame === state.lastFrame) return;
  still.dataset.frame = state.lastFrame;
  still.src = `/frames/${state.lastFrame}.png`;
  still.alt = `Screenshot of turn ${state.numTurns}`;
}

function foot() {
  if (state.noScreen && state.lastFrame && !state.isFinal) return `The screenshot of turn ${state.numTurns}; the next one comes with the next turn.`;
  if (isHeld()) return root.classList.contains("has-focus") ? "The keyboard is in the desktop; Shift + Escape brings it back to this page." : "Click the desktop to type into it. f finishes, b gives it back.";
  if (mayControl && isShown("take")) return "Press c to pause the agent and use this desktop yourself.";
  return "";
}

// --- wiring ----------------------------------------------------------------------------------------------

root.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button) ACTIONS[button.dataset.do]();
});
for (const type of ["focusin", "focusout"]) {
  root.querySelector("[data-screen]").addEventListener(type, () => {
    root.classList.toggle("has-focus", type === "focusin");
    draw();
  });
}
// Before noVNC, which takes every key while its canvas has the focus.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !event.shiftKey || !root.classList.contains("has-focus") || !isHeld()) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  live.blur();
}, true);

const press = (name) => () => isShown(name) && root.querySelector(`[data-do="${name}"]`)?.click();
bind("z", "Full screen", press("fullscreen"), "Desktop");
bind("t", "Open the trajectory's turns", () => root.querySelector("[data-viewer]").click(), "Desktop");
if (mayControl) {
  bind("c", "Take over: pause the agent and act yourself", press("take"), "Desktop");
  bind("b", isDemonstration ? "Discard the recording" : "Hand back to the agent", press("back"), "Desktop");
  bind("f", "Finish and evaluate", press("finish"), "Desktop");
  bind("Shift+Escape", "Bring the keyboard from the desktop back to this page", () => live.blur(), "Desktop");
}
// Control would expire while no connection renews it: the desktop is not there yet, or the line is broken.
setInterval(() => {
  if (state.isFinal) return;
  if (isMine() && (!state.hasScreen || line !== "live")) ask(`/controls/${state.control}/renew/`);
  else refresh();
}, POLL_MS);

subscribe(`trajectory.${id}`, root.dataset.cursor, (event) => {
  if (/^(control|screen|trajectory|turn\.added|stream)/.test(event.type)) refresh();
});
showPill();
startParts();
connect();
draw();
