// Dialogs, confirmations and filters. Not a module, so that it runs first: on a slow page a form could be
// sent without its question, a filter chosen or a dialog's button pressed without effect.
(() => {
  document.addEventListener("click", ({ target }) => {
    const opener = target.closest("[data-open-dialog]");
    if (opener) document.getElementById(opener.dataset.openDialog)?.showModal();
    if (target.closest("[data-close-dialog]")) target.closest("dialog")?.close();
    if (target instanceof HTMLDialogElement) target.close(); // a click on the backdrop
  });

  // A script that did not come, as the network changed or the server restarted: the page would stay half alive.
  window.addEventListener("error", ({ target }) => {
    if (target instanceof HTMLScriptElement) document.documentElement.dataset.incomplete = "";
  }, true);

  // A form with data-confirm asks first, in one shared dialog; the words are in its data attributes.
  let asked = null;
  const ask = (dialog, form, submitter, question) => {
    const words = (name) => submitter?.dataset[name] ?? form.dataset[name];
    dialog.querySelector("[data-question]").textContent = question;
    dialog.querySelector("[data-detail]").textContent = words("confirmDetail") ?? "";
    const yes = dialog.querySelector("[data-yes]");
    yes.textContent = words("confirmYes") ?? "Yes";
    yes.onclick = () => {
      dialog.close();
      asked = form;
      form.requestSubmit(submitter);
    };
    dialog.showModal();
    yes.focus();
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const question = event.submitter?.dataset.confirm ?? form.dataset.confirm;
    if (!question || asked === form) {
      asked = null;
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
    const dialog = document.getElementById("confirm"); // the last part of a page: missing while it loads
    if (dialog) ask(dialog, form, event.submitter, question);
  }, true);

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
})();
