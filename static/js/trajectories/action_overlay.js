// Draws the action on the frame where it was decided. All sizes are CSS pixels, all places percent of
// the frame, so that the drawing stays crisp at every zoom.
import { make } from "../lib/dom.js";

const SVG = "http://www.w3.org/2000/svg";

function line(className, from, to, turn) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "overlay-lines");
  svg.setAttribute("viewBox", `0 0 ${turn.width} ${turn.height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  const path = document.createElementNS(SVG, "line");
  path.setAttribute("class", className);
  for (const [name, value] of Object.entries({ x1: from[0], y1: from[1], x2: to[0], y2: to[1] })) {
    path.setAttribute(name, value);
  }
  path.setAttribute("vector-effect", "non-scaling-stroke");
  svg.append(path);
  return svg;
}

function place(node, x, y, turn) {
  node.style.left = `${(100 * x) / turn.width}%`;
  node.style.top = `${(100 * y) / turn.height}%`;
  return node;
}

function pointLabel(turn, text, x = turn.action.x, y = turn.action.y) {
  const label = place(make("span", "overlay-label", text), x, y, turn);
  if (x > turn.width * 0.7) label.classList.add("is-left");
  if (y > turn.height * 0.86) label.classList.add("is-above");
  label.title = titleOf(turn, x, y);
  return label;
}

const titleOf = ({ raw }, x, y) => `Screen ${x}, ${y} px${raw ? ` · as written: ${raw}` : ""}`;

function clickMarks(turn) {
  const ring = place(make("span", `overlay-ring is-${turn.action.kind}`), turn.action.x, turn.action.y, turn);
  ring.title = titleOf(turn, turn.action.x, turn.action.y);
  return [ring, pointLabel(turn, turn.caption)];
}

function dragMarks(turn) {
  const { x, y, to_x: toX, to_y: toY } = turn.action;
  if (!isPointed(turn.action)) return [place(make("span", "overlay-ring"), toX, toY, turn), pointLabel(turn, turn.caption, toX, toY)];
  return [
    line("overlay-drag", [x, y], [toX, toY], turn),
    place(make("span", "overlay-dot"), x, y, turn),
    place(make("span", "overlay-ring"), toX, toY, turn),
    pointLabel(turn, turn.caption, toX, toY),
  ];
}

function scrollMarks(turn) {
  const { x, y, scroll_x: across = 0, scroll_y: down = 0 } = turn.action;
  const arrow = down ? (down > 0 ? "↓" : "↑") : across > 0 ? "→" : "←";
  const node = make("span", "overlay-scroll", arrow);
  place(node, x ?? turn.width / 2, y ?? turn.height / 2, turn);
  node.append(make("small", "", String(Math.abs(down || across))));
  node.title = turn.caption;
  return [node];
}

function keyCaption(turn) {
  const caption = make("div", "overlay-caption");
  for (const key of turn.keys) caption.append(make("kbd", "overlay-key", key));
  return caption;
}

function textCaption(turn) {
  const caption = make("div", "overlay-caption");
  caption.append(make("span", "overlay-typed", (turn.action.text ?? "").replaceAll("\n", "⏎")));
  return caption;
}

function wordCaption(text, tone = "") {
  const caption = make("div", "overlay-caption");
  caption.append(make("span", `overlay-word ${tone}`, text));
  return caption;
}

const isPointed = ({ x }) => x !== null && x !== undefined;

// Of a completion with several actions: each point with its number, and all of them as a list.
function programMarks(turn) {
  const list = make("ol", "overlay-caption overlay-program");
  const marks = turn.steps.flatMap((step, index) => {
    list.append(make("li", "", step.caption));
    const isDrawn = isPointed(step.action) && step.action.kind !== "terminate";
    return isDrawn ? marksOf({ ...turn, ...step, caption: `${index + 1}` }) : [];
  });
  return [...marks, list];
}

function marksOf(turn) {
  const drawer = DRAWERS[turn.action.kind] ?? (isPointed(turn.action) ? clickMarks : undefined);
  return drawer ? drawer(turn) : [wordCaption(turn.caption)];
}

const DRAWERS = {
  drag: dragMarks,
  scroll: scrollMarks,
  key: (turn) => [turn.keys.length ? keyCaption(turn) : wordCaption(turn.caption)],
  type: (turn) => [textCaption(turn)],
  paste: (turn) => [textCaption(turn)],
  wait: (turn) => [wordCaption(turn.caption)],
  terminate: (turn) => [wordCaption(turn.caption, turn.action.status === "failure" ? "is-bad" : "is-good")],
};

// Replace what `layer` shows by the marks of `turn` (nothing for a turn that waits).
export function drawOverlay(layer, turn) {
  if (!turn || turn.isEnd) return layer.replaceChildren();
  const marks = [];
  if (turn.parseError) marks.push(wordCaption("No action: could not parse the completion", "is-bad"));
  else if (turn.steps?.length) marks.push(...programMarks(turn));
  else if (turn.action) marks.push(...marksOf(turn));
  if (turn.actionError) marks.push(wordCaption(`Refused: ${turn.actionError}`, "is-bad is-error"));
  layer.replaceChildren(...marks);
}
