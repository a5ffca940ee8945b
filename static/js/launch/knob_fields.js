// The fields of the launch form: their values, marks of change, and how often they differ from the baseline.
export const form = document.getElementById("launch");

export const knobsIn = (root = form) => [...root.querySelectorAll("[data-knob]")];
export const sectionsOf = () => [...form.querySelectorAll("[data-section]")];
export const fieldOf = (knob) => knob.querySelector("input:not([type=hidden]), select, textarea");
export const valueOf = (field) => (field.type === "checkbox" ? String(field.checked) : field.value.trim());
export const numChanged = () => Number(form.querySelector("[data-changed-total]").textContent);

export function markChanges() {
  let total = 0;
  for (const section of sectionsOf()) {
    let count = 0;
    for (const knob of knobsIn(section)) {
      const field = fieldOf(knob);
      const isChanged = valueOf(field) !== knob.dataset.baseline.trim();
      knob.classList.toggle("is-changed", isChanged);
      if (field.type === "checkbox") knob.querySelector("[data-switch-word]").textContent = field.checked ? "on" : "off";
      count += isChanged;
    }
    const badge = section.querySelector("[data-changed-count]");
    badge.hidden = count === 0;
    badge.textContent = `${count} changed`;
    total += count;
  }
  form.querySelector("[data-changed-total]").textContent = total;
}

export function resetToBaseline(knob) {
  const field = fieldOf(knob);
  if (field.type === "checkbox") field.checked = knob.dataset.baseline === "true";
  else field.value = knob.dataset.baseline;
  field.focus();
}

// The field of that name, knob or not; null when there is none.
export const fieldNamed = (name) => form.querySelector(`[name="${CSS.escape(name)}"]:not([type=hidden])`);
