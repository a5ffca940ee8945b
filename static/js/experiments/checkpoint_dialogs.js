// The dialogs of the checkpoints tab: which checkpoint they are about, and how sure an answer will be.
const Z_95 = 1.96;

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-open-dialog][data-of-step]");
  if (!opener) return;
  const dialog = document.getElementById(opener.dataset.openDialog);
  dialog.querySelector("form").action = opener.dataset.action;
  dialog.querySelector("[data-step]").textContent = opener.dataset.ofStep;
  refresh();
});

// Half the 95 % interval at 50 % success, where it is widest.
function refresh() {
  const number = Number(document.getElementById("evaluate-num").value);
  const hint = document.querySelector("[data-half-width]");
  hint.textContent = number >= 1 ? `With ${number} tasks the 95 % interval is at most ± ${Math.round((100 * Z_95 * 0.5) / Math.sqrt(number))} points wide.` : "";
  const isGreedy = document.querySelector("[data-sampling]").value === "greedy";
  for (const field of document.querySelectorAll("[data-sampled]")) field.hidden = isGreedy;
}

for (const form of document.querySelectorAll("[data-checkpoint-form]")) form.addEventListener("input", refresh);
