// The page of a live desktop: watch, take over, hand back, finish. The server's answer to `state` is the truth;
// this page only asks and shows.
import { bind } from "../lib/keyboard_shortcuts.js";
import { subscribe } from "../lib/live_events.js";
import { Refresher } from "../lib/refresher.js";
import { getJson, postForm, Refused } from "../lib/requests.js";
import { drawDesktop } from "./desktop_view.js";
import { CODES, LiveScreen } from "./live_screen.js";

const POLL_MS = 4000;
const root = document.getElementById("desktop");
const id = root.dataset.trajectory;
const mayControl = root.dataset.mayControl === "yes";
const isDemonstration = root.dataset.demonstration === "yes";
const refresher = new Refresher(async () => take(await getJson(root.dataset.stateUrl)), { minMs: 0, retryMs: POLL_MS, failed: draw });
let state = JSON.parse(document.getElementById("desktop-state").textContent);
let line = "closed"; // of the screen: connecting, live, reconnecting, closed
let isElsewhere = false; // another tab of the same person has the control
let isDenied = false;
let isMaking = false; // a task, here and by this person
let isLeaving = false;
let note = "";
let why = ""; // the server's reason when the desktop could not be reached
const live = new LiveScreen(root.querySelector("[data-screen]"), `/ws/screens/${id}/`, onLine);

const isMine = () => state.isMine && !isElsewhere;
const isWatch = () => isMine() && state.isWatch; // the agent waits for this person, who may take over
const isHeld = () => isMine() && state.controlStatus === "held";

function draw() {
  drawDesktop({ state, line, note, why, isDenied, isElsewhere, isDemonstration, isMine: isMine(), isWatch: isWatch(), isHeld: isHeld(), isShown });
}

function onLine(next, code, reason = "") {
  line = next;
  if (next !== "connecting") why = reason; // kept while it is tried again
  if (next === "closed") {
    if (code === CODES.otherTab) isElsewhere = true;
    if (CODES.denied.includes(code)) isDenied = true;
  }
  if (code) refresher.soon(); // the server ended it: the state says what for
  draw();
}

// The connection that fits the state: with control, without, or none.
function connect() {
  const wanted = isMine() ? state.control : null;
  if (isDenied || !state.hasScreen) {
    line = "closed";
    return live.forget();
  }
  live.allowInput(isHeld());
  if (!live.isOpen && line !== "reconnecting") return live.open(wanted);
  if (live.control !== wanted) live.open(wanted);
}

function take(next) {
  const wasMine = state.isMine;
  state = next;
  if (!state.isMine) isElsewhere = false;
  if (isLeaving) return;
  isMaking ||= state.isMine && Boolean(state.draft);
  if (isMaking && state.draft === "done") {
    isLeaving = true; // another answer of the server must not begin the page anew
    return location.assign(`/task-editor/?draft=${id}`);
  }
  if (wasMine && !state.isMine && state.lastControl === "expired") note = "Your control ended because this page was away.";
  connect();
  draw();
}

async function ask(url, fields = {}) {
  note = "";
  try {
    take(await (await postForm(url, fields)).json());
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    note = error.message;
    draw();
    refresher.soon();
  }
}

// --- buttons and keys ------------------------------------------------------------------------------------

const ACTIONS = {
  take: () => {
    isElsewhere = false;
    ask(root.dataset.takeUrl);
  },
  back: () => ask(`/controls/${state.control}/hand-back/`),
  finish: () => ask(`/controls/${state.control}/finish/`, { claim: "success" }),
  infeasible: () => ask(`/controls/${state.control}/finish/`, { claim: "failure" }),
  fullscreen: () => (document.fullscreenElement ? document.exitFullscreen() : root.querySelector(".screen").requestFullscreen()),
};

function isShown(name) {
  if (state.isFinal) return name === "fullscreen";
  if (name === "take") return mayControl && (isElsewhere || isWatch() || !state.control) && (state.hasScreen || isDemonstration) && state.status !== "evaluating";
  if (name === "back") return isMine();
  if (name === "finish") return isHeld() && state.draft !== "arranging";
  if (name === "infeasible") return isHeld() && !state.draft;
  if (name === "type") return isHeld();
  return true;
}

root.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-do]");
  if (button) ACTIONS[button.dataset.do]();
});
root.querySelector(".screen-type").addEventListener("submit", (event) => {
  event.preventDefault();
  live.type(event.target.elements.text.value);
  event.target.reset();
});
// Where a task is made: a program is opened, a file put, or the task begins here.
root.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-draft]");
  if (!form) return;
  event.preventDefault();
  ask(form.action, new FormData(form));
  form.reset();
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
  else refresher.soon();
}, POLL_MS);
subscribe(`trajectory.${id}`, root.dataset.cursor, (event) => {
  if (/^(control|screen|trajectory|turn\.added|stream)/.test(event.type)) refresher.soon();
});
connect();
draw();
