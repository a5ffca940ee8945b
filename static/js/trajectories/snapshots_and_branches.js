// The viewer's line about snapshots and branches: the switch, and the dialog of "Branch from here".
import { bind } from "../lib/keyboard_shortcuts.js";
import { postForm, Refused } from "../lib/requests.js";

const holder = document.querySelector("[data-branches]");
const viewer = document.getElementById("viewer");
const dialog = document.getElementById("branch");
const form = dialog.querySelector("[data-branch-form]");
let turn = null; // the one that is looked at, 0-based

const line = () => holder.querySelector(".branches");
const kept = () => new Set((line()?.dataset.kept ?? "").split(" ").filter(Boolean).map(Number));
const button = (name) => holder.querySelector(`[data-branches-do="${name}"]`);

function draw() {
  const known = kept();
  const first = Number(line()?.dataset.branchTurn || 0);
  for (const cell of viewer.querySelectorAll("[data-filmstrip] [data-cell]")) {
    const index = Number(cell.dataset.cell);
    cell.classList.toggle("has-snapshot", known.has(index));
    cell.classList.toggle("is-inherited", index < first);
  }
  const open = button("open");
  if (!open) return;
  open.disabled = turn === null || !known.has(turn);
  open.querySelector("[data-branches-label]").textContent = open.disabled ? "Branch from here" : `Branch from turn ${turn + 1}`;
  open.title = open.disabled ? "The desktop was not saved before this turn; turns with a dot were" : "Continue from the desktop's state before this turn (b)";
}

// The server's answer, or { error, field } when it refused.
async function post(url, fields) {
  try {
    return await (await postForm(url, fields)).json();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { error: error.message, field: error.body.field };
  }
}

function showError(field, text) {
  for (const note of form.querySelectorAll("[data-error-of]")) note.hidden = true;
  const note = form.querySelector(`[data-error-of="${field}"]`) ?? form.querySelector('[data-error-of="turn"]');
  note.textContent = text;
  note.hidden = !text;
}

function openDialog() {
  const open = button("open");
  if (!open || open.disabled) return;
  form.elements.turn.value = turn;
  dialog.querySelector("[data-branch-number]").textContent = turn + 1;
  showError("turn", "");
  dialog.showModal();
  form.elements.size.select();
}

async function flip() {
  const toggle = button("switch");
  if (!toggle) return;
  const isOn = toggle.getAttribute("aria-checked") !== "true";
  toggle.setAttribute("aria-checked", String(isOn));
  const answer = await post(holder.dataset.switchUrl, { on: isOn ? "1" : "0" });
  if (!answer.error) return;
  toggle.setAttribute("aria-checked", String(!isOn));
  toggle.title = answer.error;
  toggle.classList.add("is-refused");
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const send = event.submitter ?? form.querySelector(".btn-primary");
  send.disabled = true;
  const answer = await post(send.getAttribute("formaction") ?? form.action, new FormData(form));
  send.disabled = false;
  if (answer.error) return showError(answer.field, answer.error);
  location.assign(answer.tree);
});
holder.addEventListener("click", (event) => {
  const name = event.target.closest("[data-branches-do]")?.dataset.branchesDo;
  if (name === "open") openDialog();
  if (name === "switch") flip();
});
for (const part of [holder, viewer.querySelector("[data-filmstrip]")]) part.addEventListener("html:shown", draw);
viewer.addEventListener("frame:painted", ({ detail }) => {
  turn = detail.isEnd ? null : detail.index;
  draw();
});

bind("b", "Branch from here", openDialog, "Branches");
bind("s", "Keep snapshots: on or off", flip, "Branches");
bind("g b", "Tree of branches", () => holder.querySelector("[data-branches-tree]")?.click(), "Branches");
draw();
