// One dialog asks before every operation on a desktop; menus close when the focus goes elsewhere.
const VERBS = {
  quarantine: {
    title: (name) => `Quarantine ${name}?`,
    detail: "It is kept as it is for inspection, and never leased. A trajectory that runs on it is errored and run again on another desktop.",
    yes: "Quarantine",
    needsReason: true,
  },
  release: {
    title: (name) => `Release ${name}?`,
    detail: "It is taken from its holder, cleaned, and goes back to the pool. A trajectory that runs on it is errored and run again.",
    yes: "Release",
  },
  restart: {
    title: (name) => `Restart ${name}?`,
    detail: "It is started again; everything in it is lost. A trajectory that runs on it is errored and run again.",
    yes: "Restart",
  },
  kill: {
    title: (name) => `Kill ${name}?`,
    detail: "It is ended with everything in it. A trajectory that runs on it is errored and run again on another desktop.",
    yes: "Kill",
  },
};

export function startOperations() {
  const dialog = document.getElementById("operate");
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-operate]");
    if (button && dialog) ask(dialog, button.dataset);
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (button || !menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
  });
}

function ask(dialog, { operate, target, action }) {
  const verb = VERBS[operate];
  const form = dialog.querySelector("form");
  const reason = form.elements.reason;
  form.action = action;
  dialog.querySelector("[data-title]").textContent = verb.title(target);
  dialog.querySelector("[data-detail]").textContent = verb.detail;
  dialog.querySelector("[data-yes]").textContent = verb.yes;
  dialog.querySelector("[data-optional]").hidden = Boolean(verb.needsReason);
  reason.required = Boolean(verb.needsReason);
  reason.value = "";
  dialog.showModal();
  reason.focus();
}
