// Beside the screen: its accessibility tree, whose rows and boxes point at each other, and the terminal's text.
import { make } from "../lib/dom.js";
import { bind } from "../lib/keyboard_shortcuts.js";
import { getJson } from "../lib/requests.js";
import { boxPlace, describeTree, matchingRows, readRows, rowAt } from "./tree_rows.js";

const MAX_KEPT = 12; // turns whose texts stay at hand
const WAIT_MS = 150; // while turns are stepped through quickly, nothing is fetched
const MARKS = { added: "New", changed: "Changed" };
const NOTHING = {
  end: "Nothing is read after the last turn.",
  coming: "It comes with the turn.",
  turn: "It was not read with this turn.",
};
const SIDES = ["turn", "tree", "terminal"];

export class ObservedTexts {
  constructor(root, frame) {
    const find = (name) => root.querySelector(`[data-${name}]`);
    this.tabs = find("side-tabs");
    if (!this.tabs) return;
    this.root = root;
    this.frame = frame;
    this.box = frame.querySelector("[data-widget-box]");
    this.panels = { turn: find("cards"), tree: find("tree"), terminal: find("terminal") };
    for (const name of ["tree-search", "tree-changes", "tree-state", "tree-rows", "tree-removed", "terminal-state", "terminal-text"]) this[name] = find(name);
    this.panels.turn.setAttribute("role", "tabpanel");
    this.panels.turn.setAttribute("aria-labelledby", "side-tab-turn");
    this.side = "turn";
    this.turn = null;
    this.kept = new Map();
    this.rows = [];
    this.listen();
  }

  listen() {
    this.tabs.addEventListener("click", ({ target }) => this.open(target.closest("[data-side]")?.dataset.side));
    this.tabs.addEventListener("keydown", (event) => this.onTabKey(event));
    this["tree-search"].addEventListener("input", () => this.draw());
    this["tree-changes"].addEventListener("click", (event) => {
      const isOn = event.currentTarget.getAttribute("aria-pressed") !== "true";
      event.currentTarget.setAttribute("aria-pressed", String(isOn));
      this.draw();
    });
    const list = this["tree-rows"];
    list.addEventListener("pointerover", ({ target }) => this.point(target.closest("[data-row]")));
    list.addEventListener("pointerleave", () => this.point(list.querySelector('[aria-selected="true"]')));
    list.addEventListener("focusin", ({ target }) => this.choose(target.closest("[data-row]")));
    list.addEventListener("click", ({ target }) => target.closest("[data-row]")?.focus());
    list.addEventListener("keydown", (event) => this.onRowKey(event));
    this.frame.addEventListener("pointermove", (event) => this.onPicture(event));
    bind("a", "Accessibility tree beside the screen, or the turn", () => this.open(this.side === "tree" ? "turn" : "tree"), "Watch");
    bind("e", "Terminal's text beside the screen, or the turn", () => this.open(this.side === "terminal" ? "turn" : "terminal"), "Watch");
  }

  open(side) {
    if (!side) return;
    this.side = side;
    for (const tab of this.tabs.children) {
      const isOpen = tab.dataset.side === side;
      tab.setAttribute("aria-selected", String(isOpen));
      tab.tabIndex = isOpen ? 0 : -1;
      this.panels[tab.dataset.side].hidden = !isOpen;
    }
    this.point(null);
    this.want();
  }

  onTabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    this.open(SIDES[(SIDES.indexOf(this.side) + step + SIDES.length) % SIDES.length]);
    this.tabs.querySelector('[aria-selected="true"]').focus();
  }

  // Arrows, Home and End go through the rows; they do not reach the player.
  onRowKey(event) {
    const shown = [...this["tree-rows"].children];
    const place = shown.indexOf(document.activeElement);
    const next = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    shown[Math.max(0, Math.min(shown.length - 1, next))]?.focus();
  }

  // The viewer's turn is another one, or has become whole.
  show(turn) {
    if (!this.tabs) return;
    const isOther = ["index", "isEnd", "isComing"].some((key) => turn?.[key] !== this.turn?.[key]);
    this.turn = turn ?? null;
    if (isOther) this.want();
  }

  want() {
    clearTimeout(this.timer);
    if (this.side === "turn") return;
    if (this.turn?.isComing) return this.tree ? undefined : this.put(null); // its texts come with its record
    const known = this.turn && !this.turn.isEnd && this.kept.get(this.turn.index);
    if (known || !this.turn || this.turn.isEnd) return this.put(known || null);
    this.timer = setTimeout(() => this.fetch(this.turn.index), WAIT_MS);
  }

  async fetch(index) {
    let texts;
    try {
      texts = await getJson(`${this.root.dataset.turnsUrl}${index}/texts/`);
    } catch (refused) {
      texts = { failed: refused.message };
    }
    if (!texts.failed) this.kept.set(index, texts);
    if (this.kept.size > MAX_KEPT) this.kept.delete(this.kept.keys().next().value);
    if (this.turn?.index === index && !this.turn.isEnd) this.put(texts);
  }

  put(texts) {
    const nothing = texts?.failed ?? NOTHING[this.turn?.isEnd ? "end" : this.turn?.isComing ? "coming" : "turn"];
    this.tree = texts?.tree ?? null;
    this.nothing = nothing;
    this.rows = readRows(this.tree?.rows ?? []);
    const terminal = texts?.terminal;
    this["terminal-text"].textContent = terminal?.text ?? "";
    this["terminal-text"].hidden = !terminal?.text;
    this["terminal-state"].textContent = terminal ? terminal.error || terminalWords(terminal) : nothing;
    this.draw();
  }

  draw() {
    const onlyChanges = this["tree-changes"].getAttribute("aria-pressed") === "true";
    const found = matchingRows(this.rows, this["tree-search"].value, { onlyChanges });
    this["tree-state"].textContent = this.tree ? describeTree(this.tree, this.rows, found.length) : this.nothing;
    this["tree-rows"].replaceChildren(...found.map((index) => this.line(index)));
    this["tree-rows"].hidden = !found.length;
    const first = this["tree-rows"].firstElementChild;
    if (first) first.tabIndex = 0;
    const removed = this.tree?.removed ?? [];
    this["tree-removed"].hidden = !removed.length;
    this["tree-removed"].replaceChildren(make("h3", "", "Gone since the turn before"), ...removed.map(([role, name]) => make("div", "", `${role} ${name}`)));
    this.point(null);
  }

  line(index) {
    const { depth, role, name, text, states, mark, box } = this.rows[index];
    const line = make("div", `tree-row${mark ? ` is-${mark}` : ""}${box ? "" : " is-unplaced"}`);
    line.setAttribute("role", "treeitem");
    line.setAttribute("aria-level", depth + 1);
    line.setAttribute("aria-selected", "false");
    line.tabIndex = -1;
    line.dataset.row = index;
    line.style.setProperty("--depth", Math.min(depth, 12));
    line.append(make("span", "tree-role", role));
    if (name) line.append(make("span", "tree-name", name));
    if (text && text !== name) line.append(make("span", "tree-text", text));
    if (states.length) line.append(make("small", "", states.join(", ")));
    if (mark) line.append(make("b", "tree-mark", MARKS[mark]));
    return line;
  }

  choose(line) {
    if (!line) return;
    for (const other of this["tree-rows"].querySelectorAll('[aria-selected="true"]')) other.setAttribute("aria-selected", "false");
    for (const other of this["tree-rows"].querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    line.setAttribute("aria-selected", "true");
    line.tabIndex = 0;
    line.scrollIntoView({ block: "nearest" });
    this.point(line);
  }

  // Draws the box of a row on the picture.
  point(line) {
    for (const other of this["tree-rows"].querySelectorAll(".is-pointed")) other.classList.remove("is-pointed");
    const box = line && this.rows[line.dataset.row]?.box;
    const place = box && this.turn?.width ? boxPlace(box, this.turn) : null;
    this.box.hidden = !place;
    line?.classList.add("is-pointed");
    if (place) Object.assign(this.box.style, place);
  }

  onPicture(event) {
    if (this.side !== "tree" || !this.turn?.width) return;
    const { left, top, width, height } = this.frame.getBoundingClientRect();
    const x = ((event.clientX - left) / width) * this.turn.width;
    const y = ((event.clientY - top) / height) * this.turn.height;
    const line = this["tree-rows"].querySelector(`[data-row="${rowAt(this.rows, x, y)}"]`);
    this.point(line);
    line?.scrollIntoView({ block: "nearest" });
  }
}

const terminalWords = ({ text, hasChanged }) => {
  if (!text) return "There was no terminal, or it was empty.";
  return hasChanged ? "Another text than at the turn before." : "The terminal in front.";
};
