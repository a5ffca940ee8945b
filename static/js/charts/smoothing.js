// An exponential moving average over the points of a line, without the pull of its first value.
export function smoothed(values, weight) {
  let sum = 0, weights = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    weights = weight * weights + (1 - weight);
    return sum / weights;
  });
}

// The smoothed line on top of its raw one, which stays behind it, faint.
export function smoothedTraces(trace, weight) {
  if (!weight || trace.mode === "markers") return [trace];
  const raw = { ...trace, mode: "lines", opacity: 0.25, line: { ...trace.line, width: 1 }, hoverinfo: "skip", hovertemplate: undefined, showlegend: false, legendgroup: trace.name };
  const smooth = { ...trace, mode: "lines", y: smoothed(trace.y, weight), customdata: trace.y, hovertemplate: "%{y:.4g} (raw %{customdata:.4g})", legendgroup: trace.name };
  return [raw, smooth];
}
