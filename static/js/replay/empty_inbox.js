// An inbox without entries: the last label, which may have emptied it, can still be taken back.
import { bind } from "../lib/keyboard_shortcuts.js";

bind("z", "Undo the last label", () => document.querySelector("[data-undo-last]")?.click(), "Label");
