// How a panel looks: axes, legend, colours of the theme.
import { alarmShapes } from "./alarm_shapes.js";
import { css } from "./traces.js";

const SHARES = [0, 0.25, 0.5, 0.75, 1];

export function layoutOf(panel, traces, alarms = []) {
  const muted = css("--dh-muted");
  const grid = css("--dh-border");
  const axis = { gridcolor: grid, linecolor: grid, zeroline: false, exponentformat: "e", tickfont: { size: 10, color: muted }, automargin: true };
  const yaxis = { ...axis, ...scaleOf(panel.kind, traces.flatMap((trace) => trace.y).filter(Number.isFinite)) };
  const shapes = panel.limit == null || alarms.some(({ threshold }) => threshold === panel.limit) ? [] : [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: panel.limit, y1: panel.limit, line: { color: css("--dh-bad"), width: 1, dash: "dot" } }];
  const lastStep = Math.max(1, ...traces.map((trace) => trace.x.at(-1) ?? 0));
  const marks = alarmShapes(alarms, lastStep);
  const ticks = lastStep <= 10 ? { dtick: lastStep <= 5 ? 1 : 2 } : { nticks: 6 };
  return {
    height: 190, margin: { l: 38, r: 10, t: 6, b: traces.length > 1 ? 44 : 26 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    font: { family: "inherit", size: 11, color: css("--dh-text") }, hovermode: "x unified",
    hoverlabel: { bgcolor: `${css("--dh-surface")}d9`, bordercolor: grid, font: { size: 11, color: css("--dh-text") } },
    showlegend: traces.length > 1, legend: { orientation: "h", y: -0.17, x: 0, font: { size: 10, color: muted } },
    xaxis: { ...axis, ...ticks, tickformat: "d", showgrid: false }, yaxis, shapes: [...shapes, ...marks.shapes], annotations: marks.annotations, uirevision: panel.title,
  };
}

function scaleOf(kind, values) {
  const low = Math.min(...values), high = Math.max(...values);
  if (kind === "share") return { range: [-0.03, 1.03], tickvals: SHARES, ticktext: SHARES.map((share) => `${100 * share} %`), hoverformat: ".0%" };
  if (kind === "log" && low > 0 && high > 10 * low) return { type: "log", dtick: 1 };
  // A constant is a flat line in the middle, not the noise of its last digits.
  const around = Math.abs(high) || 1;
  if (high - low < 1e-4 * around) return { range: low < 0 || high === 0 ? [Math.min(0, low * 1.2), around] : [0, 2 * high], nticks: 5 };
  return { nticks: 5, ...(kind === "success" || kind === "log" ? { rangemode: "tozero" } : {}) };
}
