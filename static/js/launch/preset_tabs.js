// The presets of the launch form: groups by purpose as tabs, the summary of the one pointed at.
import { numChanged } from "./knob_fields.js";

export function startPresets(presets) {
  const tabs = [...presets.querySelectorAll("[data-preset-tab]")];
  const panelOf = (tab) => document.getElementById(tab.getAttribute("aria-controls"));

  function openTab(tab) {
    for (const other of tabs) {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
      panelOf(other).hidden = other !== tab;
    }
    showOwnAbout();
  }

  // Of the open group: its chosen preset, else its first.
  function showOwnAbout() {
    const panel = panelOf(tabs.find((tab) => tab.getAttribute("aria-selected") === "true"));
    showAbout(panel.querySelector(".preset[aria-current]") ?? panel.querySelector(".preset"));
  }

  function showAbout(preset) {
    for (const about of presets.querySelectorAll(".preset-about")) about.hidden = about.id !== preset.dataset.about;
  }

  presets.addEventListener("click", (event) => {
    const tab = event.target.closest("[data-preset-tab]");
    if (tab) openTab(tab);
    const count = numChanged();
    const question = `Change the preset and drop ${count} changed setting${count === 1 ? "" : "s"}?`;
    if (event.target.closest(".preset") && count && !window.confirm(question)) event.preventDefault();
  });
  presets.addEventListener("keydown", (event) => {
    const place = tabs.indexOf(event.target);
    const move = { ArrowRight: 1, ArrowLeft: -1, Home: -place, End: tabs.length - 1 - place }[event.key];
    if (place < 0 || move === undefined) return;
    event.preventDefault();
    const tab = tabs[(place + move + tabs.length) % tabs.length];
    openTab(tab);
    tab.focus();
  });
  for (const name of ["mouseover", "focusin"]) {
    presets.addEventListener(name, (event) => {
      const preset = event.target.closest(".preset");
      if (preset) showAbout(preset);
    });
  }
  presets.addEventListener("mouseleave", showOwnAbout);
}
