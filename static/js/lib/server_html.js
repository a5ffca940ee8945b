// The one place where HTML from the server gets onto a page. Idiomorph turns what is there into what came, so
// that nodes stay: focus, selection, scroll positions. What a person did stays, too: opened details, ticks and
// typed text that the server does not contradict. `html:shown` tells the holder's page.
import { Idiomorph } from "../../vendor/idiomorph/idiomorph.esm.js";
import { swapImage } from "./frame_images.js";
import { refreshTimes } from "./relative_times.js";

// Replaces the content of `holder`. With `keepsInput` off, fields take the server's values.
export function showHtml(holder, html, { keepsInput = true } = {}) {
  morph(holder, html, "innerHTML", keepsInput);
  shown(holder);
}

// Puts the one element of `html` among the children of `holder`, ordered by the number in `attribute`; it takes
// the place of the child with the same value there. "end" is last.
export function putHtml(holder, attribute, value, html) {
  const known = holder.querySelector(`:scope > [${attribute}="${value}"]`);
  if (known) morph(known, html.trim(), "outerHTML", true);
  else {
    const next = [...holder.children].find((child) => placeOf(child.getAttribute(attribute)) > placeOf(String(value)));
    holder.insertBefore(parse(html), next ?? null);
  }
  shown(holder);
}

// Adds rows before `next`, or at the end.
export function insertHtml(holder, html, next = null) {
  holder.insertBefore(parse(html), next);
  shown(holder);
}

function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  return template.content;
}

const placeOf = (value) => (value === "end" ? Infinity : Number(value));

function shown(holder) {
  refreshTimes(holder);
  holder.dispatchEvent(new CustomEvent("html:shown", { bubbles: true }));
}

// A tile's words and its picture change at one moment, when the new picture is decoded; the newest wins.
export function showTile(tile, fresh) {
  const picture = fresh.querySelector("img");
  const isSame = picture?.getAttribute("src") === tile.querySelector("img")?.getAttribute("src");
  comingTiles.set(tile, fresh);
  const show = (image) => {
    if (comingTiles.get(tile) !== fresh || !tile.isConnected) return;
    comingTiles.delete(tile);
    if (image) tile.querySelector("img")?.replaceWith(image);
    morph(tile, fresh, "outerHTML", true);
    shown(tile);
  };
  if (!picture || isSame) return show();
  const image = document.importNode(picture);
  image.decode().then(() => show(image), () => show()); // a picture that cannot be loaded is no reason to show another's
}

// What a tile is about to show, else what it shows.
export const newestOfTile = (tile) => comingTiles.get(tile) ?? tile;

const comingTiles = new WeakMap();

function morph(node, html, morphStyle, keepsInput) {
  const beforeNodeMorphed = (old, fresh) => {
    if (old.nodeType !== Node.ELEMENT_NODE) return true;
    if (old !== node && old.matches("[data-tile]")) {
      showTile(old, fresh);
      return false;
    }
    if (old.nodeName === "IMG" && fresh.getAttribute("src") !== old.getAttribute("src")) {
      swapImage(old, fresh);
      return false;
    }
    if (old.nodeName === "DETAILS") fresh.open = keepsInput ? old.open : old.open || fresh.open;
    if (keepsInput) keepInput(old, fresh);
    return true;
  };
  // Without it Idiomorph empties a field that has no value attribute.
  const beforeAttributeUpdated = (name, old) => !(keepsInput && name === "value" && !old.hasAttribute("value") && old.value);
  Idiomorph.morph(node, html, { morphStyle, callbacks: { beforeNodeMorphed, beforeAttributeUpdated } });
}

// What was ticked, chosen or typed stays as long as the server says the same as before.
function keepInput(old, fresh) {
  if (old.matches("input[type=checkbox], input[type=radio]")) {
    if (old.defaultChecked === fresh.defaultChecked) fresh.checked = old.checked;
  } else if (old.matches("input:not([type=hidden]), textarea")) {
    if (old === document.activeElement || old.defaultValue === fresh.defaultValue) fresh.value = old.value;
  } else if (old.matches("select")) {
    if (defaultsOf(old) === defaultsOf(fresh)) fresh.value = old.value;
  }
}

const defaultsOf = (select) => JSON.stringify([...select.options].map((option) => [option.value, option.defaultSelected]));
