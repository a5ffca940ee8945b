// Loaded on every page: live parts, global shortcuts, fresh times, navigation on a phone.
import { startNotices } from "./lib/browser_notices.js";
import { startTableExports } from "./lib/exports.js";
import { bind, showHelp } from "./lib/keyboard_shortcuts.js";
import { startParts } from "./lib/live_parts.js";
import { startPalette } from "./lib/palette.js";
import { refreshTimes } from "./lib/relative_times.js";

const EVERYWHERE = "Everywhere";

startTableExports();
startPalette();
bind("?", "Show or hide this help", showHelp, EVERYWHERE);
for (const link of document.querySelectorAll("[data-go]")) {
  bind(`g ${link.dataset.go}`, `Go to ${link.dataset.goLabel ?? link.textContent.trim()}`, () => link.click(), EVERYWHERE);
}
bind("/", "Search or filter", () => document.querySelector("[data-search]")?.focus(), EVERYWHERE);

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-keyboard-help]")) showHelp();
  const toggle = event.target.closest("[data-menu-toggle]");
  if (toggle) toggle.setAttribute("aria-expanded", document.getElementById("nav-items").classList.toggle("is-open"));
  for (const menu of document.querySelectorAll("details[data-menu][open]")) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && event.target.closest("details[data-menu][open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// On a phone the open one of many tabs may lie beyond the edge.
for (const tab of document.querySelectorAll(".tabs [aria-current='page']")) tab.parentElement.scrollLeft = tab.offsetLeft - 40;

refreshTimes();
startNotices(); // before parts: a page of the same stream may have been rendered after older news
startParts();
