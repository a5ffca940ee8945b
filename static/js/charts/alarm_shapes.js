// Alarms on the chart of their metric: the threshold, the steps in which it fired, and the onset with its name.
import { css } from "./traces.js";

export const alarmsOf = (panel, alarms) => alarms.filter(({ metric }) => metric && panel.names.some((name) => name === metric || (name.endsWith("/") && metric.startsWith(name))));

// Shapes and annotations of a Plotly layout; a chart of one metric among several still says whose threshold it is.
export function alarmShapes(alarms, lastStep) {
  const color = css("--dh-bad");
  const shapes = [], annotations = [];
  for (const [index, alarm] of alarms.entries()) {
    const end = alarm.is_cleared ? alarm.last : Math.max(alarm.last, lastStep);
    shapes.push({ type: "rect", xref: "x", x0: alarm.since, x1: end, yref: "paper", y0: 0, y1: 1, fillcolor: color, opacity: 0.08, line: { width: 0 }, layer: "below" });
    shapes.push({ type: "line", xref: "x", x0: alarm.since, x1: alarm.since, yref: "paper", y0: 0, y1: 1, line: { color, width: 1.2 } });
    if (alarm.threshold !== null) shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: alarm.threshold, y1: alarm.threshold, line: { color, width: 1, dash: "dash" } });
    const isLate = alarm.since > lastStep * 0.6;
    annotations.push({
      x: alarm.since, xref: "x", y: 1 - 0.13 * index, yref: "paper", yanchor: "top", xanchor: isLate ? "right" : "left", showarrow: false,
      text: `<a href="${alarm.url}" style="color: ${color}">${alarm.title}, step ${alarm.since}</a>`, font: { size: 10, color }, bgcolor: css("--dh-surface"), borderpad: 1,
    });
  }
  return { shapes, annotations };
}
