// An entry's own page: the verdict buttons by their keys.
import { bind } from "../lib/keyboard_shortcuts.js";

const press = (selector) => () => document.querySelector(`.entry-page ${selector}:not(:disabled)`)?.click();
bind("a", "Accept", press('[value="accepted"]'), "Label");
bind("r", "Reject", press('[value="rejected"]'), "Label");
bind("g", "Gold", press('[value="gold"]'), "Label");
bind("z", "Undo the last label", press("[formaction]"), "Label");
