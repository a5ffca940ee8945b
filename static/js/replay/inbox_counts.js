// The counts of the inbox: verdicts, all, and how many entries a bulk label is about.
const root = document.getElementById("curate");

function add(node, delta) {
  if (node) node.textContent = (Number(node.textContent.replaceAll(",", "")) + delta).toLocaleString("en-US");
}

// `delta` entries more have this verdict.
export function countVerdict(verdict, delta) {
  add(root.querySelector(`[data-count="${verdict}"]`), delta);
  if (![verdict, "all"].includes(root.dataset.verdict)) return;
  for (const node of root.parentElement.querySelectorAll("[data-bulk-number]")) add(node, delta);
  const expected = root.parentElement.querySelector("#bulk input[name=expected]");
  if (expected) expected.value = String(Number(expected.value) + delta);
}

// `number` entries of one verdict have another now.
export function countMoved(from, to, number) {
  if (from === to || !number) return;
  countVerdict(from, -number);
  countVerdict(to, number);
}

// One more entry came, with no verdict yet.
export function countArrival() {
  countVerdict("inbox", 1);
  add(root.querySelector("[data-count=all]"), 1);
}

// A bulk label of many entries takes its time: the dialog says so, and takes no second answer.
const form = root.parentElement.querySelector("#bulk form");
form?.addEventListener("submit", () => {
  form.querySelector("[data-bulk-busy]").hidden = false;
  form.setAttribute("aria-busy", "true");
  requestAnimationFrame(() => form.querySelectorAll("button").forEach((button) => (button.disabled = true)));
});
