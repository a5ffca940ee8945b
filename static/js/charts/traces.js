// Series of numbers as Plotly traces: names, colours, lines.
const COLORS = ["--dh-accent", "--dh-good", "--dh-warning", "--dh-info", "--dh-bad", "--dh-gold", "--dh-neutral"];
const FEW_POINTS = 40; // below it every point gets a marker

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const colorName = (index) => COLORS[index % COLORS.length];

// "rollout/turn_wait_s" in words: "turn wait".
export const wordsOf = (metric) => metric.split("/").slice(1).join("/").replace(/_s$/, "").replaceAll("_", " ");

// A panel's metrics among the `known` ones; a name that ends with "/" stands for all that begin so.
export function namesOf(panel, known) {
  const sorted = [...known].sort();
  return panel.names.flatMap((name) => sorted.filter((key) => (name.endsWith("/") ? key.startsWith(name) : key === name)));
}

export function lineTrace(name, { x, y }, index) {
  const color = css(colorName(index));
  const mode = x.length < FEW_POINTS ? "lines+markers" : "lines";
  return { name, x, y, mode, line: { color, width: 1.8 }, marker: { color, size: 4 }, hovertemplate: "%{y:.4g}" };
}

// Held-out success with its interval: sampled and greedy are traces of their own.
export function evaluationTraces(points) {
  const kinds = [["held-out, sampled", "diamond", "--dh-gold", (p) => p.temperature !== 0], ["held-out, greedy", "circle", "--dh-accent", (p) => p.temperature === 0]];
  return kinds.map(([name, symbol, colour, fits]) => evaluationTrace(name, symbol, css(colour), points.filter(fits))).filter((trace) => trace.x.length);
}

function evaluationText(p) {
  const notes = [
    p.num_at_limit && `${p.num_at_limit} more at a limit`,
    p.mean_score != null && `mean score ${(100 * p.mean_score).toFixed(0)} %`,
    p.missing,
  ].filter(Boolean);
  return `${[`${p.num_success}/${p.num_samples}`, ...notes].join(", ")} ${p.name}`;
}

function evaluationTrace(name, symbol, color, points) {
  return {
    name, mode: "markers", x: points.map((p) => p.step), y: points.map((p) => p.success),
    marker: { color, size: 8, symbol },
    error_y: { type: "data", symmetric: false, array: points.map((p) => p.high - p.success), arrayminus: points.map((p) => p.success - p.low), color, thickness: 1.4, width: 4 },
    text: points.map(evaluationText), hovertemplate: "%{y:.0%} (%{text})",
  };
}
