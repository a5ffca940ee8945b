// A live desktop in the page: noVNC on our own socket, opened again when the line breaks. Knows nothing of
// who may do what: it gets whether to send input, and the server decides whether input passes.
import RFB from "../../vendor/novnc/core/rfb.js";

const FIRST_RETRY_MS = 400;
const LAST_RETRY_MS = 6000;
export const CODES = { denied: [4401, 4403, 4404], otherTab: 4409, controlOver: 4411 };
const SHIFTS = [[0xffe1, "ShiftLeft"], [0xffe2, "ShiftRight"]];

// As X11 numbers them: Latin 1 as it is, all else behind a bit of its own.
function keysymOf(character) {
  const code = character.codePointAt(0);
  return code < 0x100 ? code : 0x1000000 | code;
}

export class LiveScreen {
  // `changed(state, code, why)`: connecting, live, reconnecting or closed, with code and reason when the server
  // closed it.
  constructor(holder, path, changed) {
    this.holder = holder;
    this.path = path;
    this.changed = changed;
    this.rfb = null;
    this.control = null;
    this.mayAct = false;
    this.retryMs = FIRST_RETRY_MS;
    this.timer = 0;
  }

  get isOpen() {
    return Boolean(this.rfb);
  }

  // Connects; `control` is the number of the control that this tab acts under, or null to watch.
  open(control = null) {
    this.close();
    this.control = control;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const query = control === null ? "" : `?control=${control}`;
    const socket = new WebSocket(`${scheme}://${location.host}${this.path}${query}`);
    let end = { code: 0, reason: "" };
    socket.addEventListener("close", (event) => (end = event));
    const rfb = new RFB(this.holder, socket, { shared: true });
    this.rfb = rfb;
    rfb.scaleViewport = true;
    rfb.viewOnly = !this.mayAct;
    rfb.showDotCursor = false;
    rfb.qualityLevel = 7;
    rfb.background = "transparent";
    rfb.addEventListener("connect", () => {
      this.retryMs = FIRST_RETRY_MS;
      this.changed("live", 0);
      if (this.mayAct) this.focus();
    });
    rfb.addEventListener("disconnect", () => {
      if (this.rfb !== rfb) return;
      this.rfb = null;
      this.lost(end.code, end.reason);
    });
    this.changed("connecting", 0);
  }

  // What the server said for good ends it; all else is tried again, each time later: also a desktop that is
  // not there yet, of which only the page's state knows whether it will come.
  lost(code, why) {
    const { denied, otherTab, controlOver } = CODES;
    if ([...denied, otherTab, controlOver].includes(code)) return this.changed("closed", code, why);
    this.changed("reconnecting", code, why);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(this.control), this.retryMs * (0.75 + Math.random() / 2));
    this.retryMs = Math.min(this.retryMs * 2, LAST_RETRY_MS);
  }

  // There is nothing to connect to; what comes is another desktop, tried at once.
  forget() {
    this.close();
    this.retryMs = FIRST_RETRY_MS;
  }

  close() {
    clearTimeout(this.timer);
    const rfb = this.rfb;
    this.rfb = null;
    rfb?.disconnect();
  }

  allowInput(mayAct) {
    const begins = mayAct && !this.mayAct;
    this.mayAct = mayAct;
    if (!this.rfb) return;
    this.rfb.viewOnly = !mayAct;
    if (begins) this.focus();
  }

  focus() {
    this.rfb?.focus({ preventScroll: true });
  }

  // Characters that no keyboard of this person has: each as the keysym of its own, so that they are one text.
  type(text) {
    for (const character of text) this.rfb?.sendKey(keysymOf(character), null);
  }

  // Gives the keyboard back to the page. The keys of the shortcut are still down on the desktop.
  blur() {
    for (const [keysym, name] of SHIFTS) this.rfb?.sendKey(keysym, name, false);
    this.rfb?.blur();
  }
}
