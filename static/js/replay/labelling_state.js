// The state of a labelling session: a queue, a place in it, what was labelled. Pure: no DOM, no network.

export const AHEAD = 3; // entries kept ready after the current one

export function newLabelling({ order, entries, position = 0, hasMore = false }) {
  const known = new Map(entries.map((entry) => [entry.id, entry]));
  return { order, known, position, hasMore, history: [], skipped: new Set(), numLabelled: 0 };
}

export function currentId(state) {
  return state.order[state.position] ?? null;
}

export function currentEntry(state) {
  return state.known.get(currentId(state)) ?? null;
}

export function putEntries(state, entries) {
  const known = new Map(state.known);
  for (const entry of entries) known.set(entry.id, { ...known.get(entry.id), ...entry });
  return { ...state, known };
}

export function append(state, ids, hasMore) {
  const fresh = ids.filter((id) => !state.order.includes(id));
  return { ...state, order: [...state.order, ...fresh], hasMore };
}

// Entries that are gone from the server leave the queue.
export function drop(state, ids) {
  if (!ids.length) return state;
  return { ...state, order: state.order.filter((id) => !ids.includes(id)) };
}

// Ids after the current place that are needed soon and not here yet.
export function lacking(state) {
  const soon = state.order.slice(state.position, state.position + 1 + AHEAD);
  return soon.filter((id) => !state.known.get(id)?.turns);
}

export function goTo(state, id) {
  const place = state.order.indexOf(id);
  if (place >= 0) return { ...state, position: place };
  const order = [...state.order];
  order.splice(state.position, 0, id); // an entry from outside the queue, e.g. after an undo
  return { ...state, order };
}

export function move(state, delta) {
  const position = Math.max(0, Math.min(state.order.length, state.position + delta));
  return { ...state, position };
}

const labelOf = ({ verdict, tags, note, labelledBy, labelledAt }) => ({ verdict, tags, note, labelledBy, labelledAt });

export function isChange(entry, change) {
  return Object.entries(change).some(([name, value]) => JSON.stringify(entry[name]) !== JSON.stringify(value));
}

// Apply a label at once; `before` goes on the undo stack.
export function label(state, id, change, user) {
  const entry = state.known.get(id);
  const next = putEntries(state, [{ id, ...change, labelledBy: user, labelledAt: new Date().toISOString() }]);
  const numLabelled = state.numLabelled + (change.verdict ? 1 : 0);
  return { ...next, numLabelled, history: [...state.history, { id, before: labelOf(entry), isVerdict: Boolean(change.verdict) }] };
}

// Take the newest label back (undo), or a certain one of `id` (the server refused it).
export function revert(state, id = null) {
  const place = id === null ? state.history.length - 1 : state.history.findLastIndex((item) => item.id === id);
  if (place < 0) return [state, null];
  const item = state.history[place];
  const history = state.history.toSpliced(place, 1);
  const numLabelled = state.numLabelled - (item.isVerdict ? 1 : 0);
  return [{ ...putEntries(state, [{ id: item.id, ...item.before }]), history, numLabelled }, item];
}

export function skip(state) {
  const skipped = new Set(state.skipped).add(currentId(state));
  return { ...move(state, 1), skipped };
}
