// What happened at which step, along the foot of every chart: a symbol each, with its words on hover.
import { css } from "./traces.js";

const KINDS = {
  checkpoint: { symbol: "square", color: "--dh-neutral", y: 0.03 },
  evaluation: { symbol: "diamond", color: "--dh-gold", y: 0.08 },
  injection: { symbol: "triangle-up", color: "--dh-info", y: 0.13 },
  resume: { symbol: "line-ns-open", color: "--dh-accent", y: 0.18 },
  rollback: { symbol: "x", color: "--dh-bad", y: 0.18 },
};

export const stageOf = (panel) => (panel.group === "SFT" ? "sft" : "grpo");

export function markerTraces(markers, isShown) {
  return Object.entries(KINDS).flatMap(([kind, { symbol, color, y }]) => {
    const found = isShown(kind) ? markers.filter((marker) => marker.kind === kind) : [];
    if (!found.length) return [];
    return [{
      name: kind, mode: "markers", yaxis: "y2", showlegend: false, cliponaxis: false,
      x: found.map(({ step }) => step), y: found.map(() => y), text: found.map(({ text }) => text),
      hovertemplate: "%{text}<extra></extra>", marker: { symbol, size: 6, color: css(color), line: { color: css(color), width: 1.5 } },
    }];
  });
}

// The axis of the markers: always the whole height of the chart.
export const markerAxis = { overlaying: "y", range: [0, 1], fixedrange: true, visible: false };
