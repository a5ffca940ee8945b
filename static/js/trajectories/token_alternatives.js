// What the policy could have written instead: shown below the tokens, for the one under the pointer or the focus.
// Left and right go from token to token; Tab enters at the one that was looked at last.
const TOKEN = "[data-alternatives]";
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };

export function startAlternatives(root) {
  root.addEventListener("pointerover", ({ target }) => show(target.closest(TOKEN)));
  root.addEventListener("focusin", ({ target }) => {
    const token = target.closest(TOKEN);
    if (!token) return;
    token.parentElement.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
    token.setAttribute("tabindex", "0");
    show(token);
  });
  root.addEventListener("keydown", (event) => {
    const token = event.target.closest(TOKEN);
    if (!token || !(event.key in STEPS)) return;
    event.preventDefault();
    const all = [...token.parentElement.querySelectorAll(TOKEN)];
    all[all.indexOf(token) + STEPS[event.key]]?.focus();
  });
}

function show(token) {
  if (!token) return;
  const rows = JSON.parse(token.dataset.alternatives).map(([text, probability, isSampled]) => {
    const row = document.createElement("li");
    row.append(written(text), ` ${probability}${isSampled ? ", sampled" : ""}`);
    return row;
  });
  const list = document.createElement("ol");
  list.append(...rows);
  const panel = token.closest("[data-card]").querySelector("[data-likeliest]");
  panel.replaceChildren("Likeliest at ", written(token.textContent), ":", list);
}

function written(text) {
  const code = document.createElement("code");
  code.textContent = text.replaceAll("\n", "⏎");
  return code;
}
