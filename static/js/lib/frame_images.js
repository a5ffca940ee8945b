// Decoded screenshots, newest wins: an <img> is decoded off the page and then swapped in, so that a step
// never shows a half-loaded frame. (A canvas of the same size would be drawn an order of magnitude slower.)

const MAX_KEPT = 48;
const SMALL_WIDTH = 800; // pixels; below it the lossless PNG is smaller than the JPEG, and sharp when enlarged
const kept = new Map(); // sha -> { image, ready }
let variant = "jpg";

// Which file to show; known by the width of the frames that follow.
export function showWidth(width) {
  if (width) variant = width <= SMALL_WIDTH ? "png" : "jpg";
}

export function frameUrl(sha, ending = variant) {
  return `/frames/${sha}.${ending}`;
}

// A frame that came without being asked for.
export function keepImage(sha, blob) {
  if (kept.has(sha)) return;
  const address = URL.createObjectURL(blob);
  const free = () => URL.revokeObjectURL(address);
  load(sha, address).ready.then(free, free);
}

function load(sha, address = frameUrl(sha)) {
  const known = kept.get(sha);
  if (known) {
    kept.delete(sha);
    kept.set(sha, known);
    return known;
  }
  const image = new Image();
  image.alt = "";
  image.draggable = false;
  image.src = address;
  const entry = { image, isReady: false };
  entry.ready = image.decode().then(
    () => (entry.isReady = true),
    () => {
      kept.delete(sha);
      throw new Error(`frame ${sha.slice(0, 8)} could not be loaded`);
    },
  );
  entry.ready.catch(() => {});
  kept.set(sha, entry);
  for (const old of kept.keys()) {
    if (kept.size <= MAX_KEPT) break;
    kept.delete(old);
  }
  return entry;
}

export function prefetch(shas) {
  for (const sha of shas) load(sha);
}

// Shows `sha` in `holder`; calls `painted` once it is on the screen. A later call overtakes this one.
export class Screen {
  constructor(holder) {
    this.holder = holder;
    this.wanted = "";
  }

  show(sha, painted = () => {}) {
    if (this.wanted === sha) return painted();
    this.wanted = sha;
    if (!sha) return this.holder.replaceChildren();
    const entry = load(sha);
    if (entry.isReady) return this.swap(entry.image, painted);
    entry.ready.then(
      () => this.wanted === sha && this.swap(entry.image, painted),
      () => this.wanted === sha && (this.wanted = ""),
    );
  }

  swap(image, painted) {
    this.holder.replaceChildren(image);
    requestAnimationFrame(() => afterPaint(painted));
  }
}

// Runs `callback` after the next frame has been painted (a message task runs after rendering).
function afterPaint(callback) {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    callback();
  };
  port2.postMessage(0);
}

// Shows `fresh` in the place of the image `old` once it is decoded: never half a frame, and the newest wins.
export function swapImage(old, fresh) {
  const image = document.importNode(fresh); // in a parsed document of its own it would never load
  const wanted = fresh.getAttribute("src");
  if (old.dataset.wanted === wanted) return;
  old.dataset.wanted = wanted;
  image.decode().then(
    () => old.dataset.wanted === wanted && old.isConnected && old.replaceWith(image),
    () => delete old.dataset.wanted,
  );
}
