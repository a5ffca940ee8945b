// The few names of a browser that scripts without a page touch at import: Node has everything else of its own.
import { mock } from "node:test";

class Page extends EventTarget {
  hidden = false;
  body = { dataset: {} };
  documentElement = {};
  querySelector = (selector) => (selector === 'meta[name="csrf-token"]' ? { content: "a-token" } : null);
  querySelectorAll = () => [];
  getElementById = () => null;
}

// A key as the page hears it.
class KeyEvent extends Event {
  constructor(key, modifiers = {}, typedInto = null) {
    super("keydown", { cancelable: true });
    Object.assign(this, { key, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false }, modifiers);
    Object.defineProperty(this, "target", { value: typedInto });
  }
}

// An element inside of something that takes text, or of nothing.
export class Field {
  constructor(takesText) {
    this.closest = () => (takesText ? this : null);
  }
}

export const document = (globalThis.document = new Page());
export const location = (globalThis.location = { protocol: "http:", host: "desk.test", reload: mock.fn() });
globalThis.window = new EventTarget();
globalThis.Element = Field;
globalThis.getComputedStyle = () => ({ getPropertyValue: (name) => ` ${name}` });

export function press(key, modifiers, typedInto) {
  const event = new KeyEvent(key, modifiers, typedInto);
  document.dispatchEvent(event);
  return event;
}

// Lets everything run that waits for promises, and no timer.
export async function settle() {
  for (let i = 0; i < 20; i += 1) await Promise.resolve();
}
