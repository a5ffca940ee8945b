// The replay inbox's keyboard, buttons and fields.
import { bind } from "../lib/keyboard_shortcuts.js";

const LABEL = "Label";
const WATCH = "Watch";
const QUEUE = "Queue";

// `actions`: verdict(name, event), skip(event), undo(), toggleTag(tag), saveTags(tags), saveNote(note), move(delta), goTo(id).
export function startControls(root, player, actions) {
  const find = (name) => root.querySelector(`[data-${name}]`);
  const [tags, note] = [find("tags"), find("note")];
  const buttons = {
    back: () => player.back(),
    forward: () => player.forward(),
    play: () => player.play(),
    skip: actions.skip,
    undo: actions.undo,
  };
  bind("a", "Accept", (event) => actions.verdict("accepted", event), LABEL);
  bind("r", "Reject", (event) => actions.verdict("rejected", event), LABEL);
  bind("g", "Gold", (event) => actions.verdict("gold", event), LABEL);
  bind("s", "Skip, no verdict", actions.skip, LABEL);
  bind("z", "Undo the last label", actions.undo, LABEL);
  bind("t", "Tags", () => tags.focus(), LABEL);
  bind("n", "Note", () => note.focus(), LABEL);
  bind("j", "Next turn", buttons.forward, WATCH);
  bind("k", "Previous turn", buttons.back, WATCH);
  bind(" ", "Play from the first turn", buttons.play, WATCH);
  bind("o", "Show or hide the action on the screen", () => root.classList.toggle("is-overlay-off"), WATCH);
  bind("v", "Open in the viewer", () => find("open").click(), WATCH);
  bind("ArrowDown", "Next entry", () => actions.move(1), QUEUE);
  bind("ArrowUp", "Previous entry", () => actions.move(-1), QUEUE);

  tags.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === "Escape") tags.blur();
  });
  tags.addEventListener("blur", () => actions.saveTags(tags.value.split(",").map((tag) => tag.trim().toLowerCase()).filter(Boolean)));
  note.addEventListener("keydown", (event) => {
    if (event.key === "Escape" || (event.key === "Enter" && event.ctrlKey)) note.blur();
  });
  note.addEventListener("blur", () => actions.saveNote(note.value.trim()));
  root.addEventListener("click", ({ target }) => {
    const { dataset } = target.closest("[data-verdict-button], [data-tag], [data-do], [data-entry], [data-cell]") ?? {};
    if (!dataset) return;
    if (dataset.verdictButton) actions.verdict(dataset.verdictButton);
    else if (dataset.tag) actions.toggleTag(dataset.tag);
    else if (dataset.do) buttons[dataset.do]?.();
    else if (dataset.entry) actions.goTo(Number(dataset.entry));
    else player.goTo(Number(dataset.cell));
  });
}
