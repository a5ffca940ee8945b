// Loaded on every page: live parts, global shortcuts, fresh times, confirmations, navigation on a phone.
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
  const opener = event.target.closest("[data-open-dialog]");
  if (opener) document.getElementById(opener.dataset.openDialog)?.showModal();
  if (event.target.closest("[data-close-dialog]")) event.target.closest("dialog")?.close();
  if (event.target.closest("[data-keyboard-help]")) showHelp();
  const toggle = event.target.closest("[data-menu-toggle]");
  if (toggle) toggle.setAttribute("aria-expanded", document.getElementById("nav-items").classList.toggle("is-open"));
  if (event.target instanceof HTMLDialogElement) event.target.close(); // a click on the backdrop
  for (const menu of document.querySelectorAll("details[data-menu][open]")) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && event.target.closest("details[data-menu][open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// A form with data-confirm asks first, in one shared dialog; the words are in its data attributes.
const dialog = document.getElementById("confirm");
let asked = null;
document.addEventListener("submit", (event) => {
  const form = event.target;
  const question = event.submitter?.dataset.confirm ?? form.dataset.confirm;
  if (!question || asked === form || !dialog) {
    asked = null;
    return;
  }
  event.preventDefault();
  event.stopImmediatePropagation();
  const submitter = event.submitter;
  dialog.querySelector("[data-question]").textContent = question;
  dialog.querySelector("[data-detail]").textContent = submitter?.dataset.confirmDetail ?? form.dataset.confirmDetail ?? "";
  const yes = dialog.querySelector("[data-yes]");
  yes.textContent = submitter?.dataset.confirmYes ?? form.dataset.confirmYes ?? "Yes";
  yes.onclick = () => {
    dialog.close();
    asked = form;
    form.requestSubmit(submitter);
  };
  dialog.showModal();
  yes.focus();
}, true);

// On a phone the open one of many tabs may lie beyond the edge.
for (const tab of document.querySelectorAll(".tabs [aria-current='page']")) tab.parentElement.scrollLeft = tab.offsetLeft - 40;

// The query string is the state of a list: filters submit themselves, empty ones stay out of the URL.
document.addEventListener("change", (event) => {
  if (event.target.closest("[data-auto-submit]")) event.target.form.requestSubmit();
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-filters]")) return;
  for (const field of event.target.elements) if (field.name && !field.value) field.disabled = true;
});
window.addEventListener("pageshow", () => {
  for (const field of document.querySelectorAll("form[data-filters] :disabled")) field.disabled = false;
});
refreshTimes();
startNotices(); // before parts: a page of the same stream may have been rendered after older news
startParts();
