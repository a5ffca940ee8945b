// Light, dark or as the system says; runs before the first paint so that nothing flashes.
(() => {
  const KEY = "deskhand-theme";
  const ORDER = ["auto", "light", "dark"];
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  const chosen = () => {
    const stored = localStorage.getItem(KEY);
    return ORDER.includes(stored) ? stored : "auto";
  };

  const apply = () => {
    const choice = chosen();
    const theme = choice === "auto" ? (system.matches ? "dark" : "light") : choice;
    const root = document.documentElement;
    root.dataset.bsTheme = theme;
    root.dataset.themeChoice = choice;
    document.dispatchEvent(new CustomEvent("theme:changed", { detail: { theme } }));
  };

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    localStorage.setItem(KEY, ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length]);
    apply();
  });
  system.addEventListener("change", apply);
  apply();
})();
