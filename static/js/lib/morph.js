// Makes an element equal to freshly drawn HTML while keeping the nodes that stay: focus, scroll positions,
// opened details and images in place. Children are matched by data-key or id, else by their position.
const KEPT_ATTRIBUTES = new Set(["open"]);

export function morphInto(holder, html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  morphChildren(holder, template.content);
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.dataset.key || node.id || "" : "");

function isAlike(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);
}

function morphChildren(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) if (keyOf(child)) keyed.set(keyOf(child), child);
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = keyOf(wanted);
    const known = key ? keyed.get(key) : place && !keyOf(place) && isAlike(place, wanted) ? place : null;
    if (known && isAlike(known, wanted)) {
      if (known === place) place = place.nextSibling;
      else old.insertBefore(known, place);
      morphNode(known, wanted);
    } else {
      old.insertBefore(wanted, place);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function morphNode(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.matches("[data-keep]")) return;
  if (old.nodeName === "IMG" && fresh.getAttribute("src") !== old.getAttribute("src")) return swapImage(old, fresh);
  if (old.isEqualNode(fresh)) return;
  morphAttributes(old, fresh);
  morphChildren(old, fresh);
}

function morphAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    if (!KEPT_ATTRIBUTES.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!KEPT_ATTRIBUTES.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  const isBusy = old === document.activeElement;
  if (old.nodeName === "INPUT" && !isBusy && old.type !== "checkbox") old.value = fresh.value;
}

// Decoded off the page, then swapped: a tile never shows a half-loaded frame; the newest one wins.
export function swapImage(old, fresh) {
  const image = fresh.cloneNode();
  const wanted = fresh.getAttribute("src");
  if (old.dataset.wanted === wanted) return;
  old.dataset.wanted = wanted;
  image.decode().then(
    () => old.dataset.wanted === wanted && old.isConnected && old.replaceWith(image),
    () => delete old.dataset.wanted,
  );
}
