// Keyboard shortcuts and the help dialog on `?`. A shortcut is one key ("j", "Shift+J", "Escape") or two in
// a row ("g e"). Everything that is bound appears in the dialog by itself.
const SEQUENCE_MS = 900;
const bindings = new Map();
let prefix = "";
let prefixTimer = 0;

export function bind(keys, label, run, group = "This page") {
  bindings.set(keys, { keys, label, run, group });
}

// All that is bound, the page's own first.
export const boundKeys = () => [...bindings.values()].reverse();

function isTyping(target) {
  return target instanceof Element && target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable=true]");
}

function nameOf(event) {
  const isLetter = event.key.length === 1;
  return event.shiftKey && !isLetter ? `Shift+${event.key}` : event.key;
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const dialog = document.getElementById("keyboard-help");
  if (dialog?.open && event.key !== "?") return;
  const name = prefix ? `${prefix} ${nameOf(event)}` : nameOf(event);
  clearTimeout(prefixTimer);
  prefix = "";
  const binding = bindings.get(name);
  if (binding) {
    event.preventDefault();
    binding.run(event);
  } else if ([...bindings.keys()].some((keys) => keys.startsWith(`${name} `))) {
    prefix = name;
    prefixTimer = setTimeout(() => (prefix = ""), SEQUENCE_MS);
  }
}

function row({ keys, label }) {
  const line = document.createElement("div");
  line.className = "shortcut";
  const text = document.createElement("span");
  text.textContent = label;
  const caps = document.createElement("span");
  for (const key of keys === " " ? ["Space"] : keys.split(" ")) {
    const cap = document.createElement("kbd");
    cap.textContent = key.replace("Arrow", "").replace("Shift+", "⇧ ");
    caps.append(cap);
  }
  line.append(text, caps);
  return line;
}

export function showHelp() {
  const dialog = document.getElementById("keyboard-help");
  if (!dialog) return;
  if (dialog.open) return dialog.close();
  const body = dialog.querySelector("[data-shortcuts]");
  body.replaceChildren();
  const groups = Map.groupBy ? Map.groupBy(bindings.values(), (b) => b.group) : grouped();
  for (const [group, items] of [...groups].reverse()) {
    const section = document.createElement("section");
    const title = document.createElement("h3");
    title.textContent = group;
    section.append(title, ...items.map(row));
    body.append(section);
  }
  dialog.showModal();
}

function grouped() {
  const groups = new Map();
  for (const item of bindings.values()) groups.set(item.group, [...(groups.get(item.group) ?? []), item]);
  return groups;
}

document.addEventListener("keydown", onKey);
