// The state of watching a trajectory: turns, position, playing, live. Pure: no DOM, no network.
//
// Every function takes a state and returns a new one; `state.position` is an index into
// `state.turns`, or `turns.length` for the screen after the last action (`endFrame`).

export const SPEEDS = { 1: 1, 2: 2, 3: 4, 4: 8 }; // turns per second

export function newPlayer({ turns = [], isFinal = false, endFrame = null, position = null } = {}) {
  const sorted = [...turns].sort((a, b) => a.index - b.index);
  const state = { turns: sorted, isFinal, endFrame, position: 0, isPlaying: false, speed: 2, isFollowing: !isFinal };
  if (position !== null) return goTo({ ...state, isFollowing: false }, position);
  return isFinal ? state : { ...state, position: lastPosition(state) };
}

// Turns of which the page brings screen and colour only: `rest` = { first, frames, states }, texts with blanks.
export function briefTurns(rest, { width = 0, height = 0 } = {}) {
  if (!rest?.frames) return [];
  const states = rest.states.split(" ");
  return rest.frames.split(" ").map((frame, place) => ({
    index: rest.first + place,
    frame: frame === "-" ? "" : frame,
    width,
    height,
    action: null,
    keys: [],
    caption: "",
    state: states[place],
  }));
}

export function lastPosition(state) {
  const last = state.turns.length - 1;
  return Math.max(0, state.endFrame ? last + 1 : last);
}

// The turn under the cursor; at the end position the screen that the last action left.
export function currentTurn(state) {
  const turn = state.turns[state.position];
  if (turn) return turn;
  return state.endFrame ? { ...state.endFrame, index: state.turns.length, isEnd: true } : null;
}

// Add or replace a turn by its index. A turn seen before changes nothing but its own content.
export function putTurn(state, turn) {
  const place = state.turns.findIndex((known) => known.index === turn.index);
  const turns = [...state.turns];
  if (place >= 0) turns[place] = { ...turns[place], ...turn };
  else {
    turns.push(turn);
    turns.sort((a, b) => a.index - b.index);
  }
  const next = { ...state, turns };
  return state.isFollowing ? { ...next, position: lastPosition(next) } : next;
}

export function finish(state, endFrame) {
  const next = { ...state, isFinal: true, endFrame: endFrame ?? state.endFrame };
  return state.isFollowing ? { ...next, position: lastPosition(next), isFollowing: false } : next;
}

export function goTo(state, position) {
  const bounded = Math.max(0, Math.min(lastPosition(state), position));
  // Scrubbing away from the newest turn of a running trajectory leaves live mode.
  const isFollowing = !state.isFinal && state.isFollowing && bounded === lastPosition(state);
  return { ...state, position: bounded, isFollowing };
}

export function stepBy(state, delta) {
  return goTo({ ...state, isPlaying: false }, state.position + delta);
}

export function jumpToLive(state) {
  return { ...state, position: lastPosition(state), isFollowing: !state.isFinal, isPlaying: false };
}

export function togglePlay(state) {
  if (state.isPlaying) return { ...state, isPlaying: false };
  const isAtEnd = state.position >= lastPosition(state);
  return { ...state, isPlaying: true, isFollowing: false, position: isAtEnd ? 0 : state.position };
}

export function setSpeed(state, speed) {
  return SPEEDS[speed] ? { ...state, speed } : state;
}

// One tick of playing: forward, and at the end stop (or, while it runs, become live).
export function tick(state) {
  if (!state.isPlaying) return state;
  if (state.position < lastPosition(state)) return { ...state, position: state.position + 1 };
  return { ...state, isPlaying: false, isFollowing: !state.isFinal };
}

export function tickMs(state) {
  return 1000 / SPEEDS[state.speed];
}

// Frames worth fetching before they are asked for, nearest first.
export function framesAround(state, reach = 3) {
  const found = [];
  for (let distance = 0; distance <= reach; distance += 1) {
    for (const place of distance ? [state.position + distance, state.position - distance] : [state.position]) {
      const frame = place === state.turns.length ? state.endFrame?.frame : state.turns[place]?.frame;
      if (frame && !found.includes(frame)) found.push(frame);
    }
  }
  return found;
}
