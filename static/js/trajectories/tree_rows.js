// Rows of an accessibility tree as the server sends them: which are looked for, and which lies under a point.

export function readRows(rows) {
  return rows.map(([depth, role, name, text, box, states, mark]) => ({ depth, role, name, text, box, states, mark }));
}

// Indexes of the rows that hold every word of `query`, and of these with `onlyChanges` the new and changed ones.
export function matchingRows(rows, query, { onlyChanges = false } = {}) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  rows.forEach((row, index) => {
    if (onlyChanges && !row.mark) return;
    const said = `${row.role} ${row.name} ${row.text}`.toLowerCase();
    if (words.every((word) => said.includes(word))) found.push(index);
  });
  return found;
}

// The row with the smallest box around a pixel of the screen, the last of equals; -1 without one.
export function rowAt(rows, x, y) {
  let best = -1;
  let least = Infinity;
  rows.forEach(({ box }, index) => {
    if (!box) return;
    const [left, top, width, height] = box;
    const isInside = x >= left && y >= top && x < left + width && y < top + height;
    if (isInside && width * height <= least) [best, least] = [index, width * height];
  });
  return best;
}

// CSS places of a box, in percent of a screen of `width` x `height` pixels, cut to the screen; null off it.
export function boxPlace([left, top, boxWidth, boxHeight], { width, height }) {
  const right = Math.min(width, left + boxWidth);
  const bottom = Math.min(height, top + boxHeight);
  if (left >= width || top >= height || right <= 0 || bottom <= 0) return null;
  const percent = (part, whole) => `${(100 * part) / whole}%`;
  const [x, y] = [Math.max(0, left), Math.max(0, top)];
  return { left: percent(x, width), top: percent(y, height), width: percent(right - x, width), height: percent(bottom - y, height) };
}

// What stands above the rows.
export function describeTree({ error, numChars, numLeft, hasBefore, removed }, rows, shown) {
  if (error && !rows.length) return error;
  const count = shown === rows.length ? `${rows.length} widgets` : `${shown} of ${rows.length} widgets`;
  const parts = [count, `${numChars.toLocaleString("en")} characters`];
  if (numLeft) parts.push(`${numLeft} more are left out`);
  if (hasBefore) {
    const number = (mark) => rows.filter((row) => row.mark === mark).length;
    parts.push(`since the turn before: ${number("added")} new, ${number("changed")} changed, ${removed.length} gone`);
  }
  return parts.join(" · ");
}
