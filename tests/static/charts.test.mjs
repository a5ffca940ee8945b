// Charts as Plotly draws them: which lines, on which scale, with which marks.
import assert from "node:assert/strict";
import { test } from "node:test";

import "./browser_stand_ins.mjs";

import { alarmShapes, alarmsOf } from "../../static/js/charts/alarm_shapes.js";
import { layoutOf } from "../../static/js/charts/chart_layout.js";
import { markerTraces, stageOf } from "../../static/js/charts/chart_markers.js";
import { smoothed, smoothedTraces } from "../../static/js/charts/smoothing.js";
import { colorName, evaluationTraces, lineTrace, namesOf, wordsOf } from "../../static/js/charts/traces.js";

test("a smoothed line starts at its first value, keeps a constant, and lags a jump", () => {
  assert.deepEqual(smoothed([4, 4, 4], 0.5), [4, 4, 4]);
  const jump = smoothed([0, 1, 1], 0.5);
  assert.equal(jump[0], 0);
  assert.ok(Math.abs(jump[1] - 2 / 3) < 1e-12 && Math.abs(jump[2] - 6 / 7) < 1e-12, String(jump));
});

test("a gap stays a gap and pulls no value", () => {
  assert.deepEqual(smoothed([2, null, 2], 0.9).map((value) => value && Number(value.toFixed(9))), [2, null, 2]);
});

test("the raw line stays behind its smoothed one; points and weight 0 are left alone", () => {
  const trace = { name: "a", mode: "lines", y: [0, 1], line: { width: 2 } };
  const [raw, smooth] = smoothedTraces(trace, 0.5);
  assert.deepEqual([raw.y, raw.showlegend, smooth.customdata, smooth.y[0]], [[0, 1], false, [0, 1], 0]);
  assert.deepEqual(smoothedTraces(trace, 0), [trace]);
  assert.deepEqual(smoothedTraces({ ...trace, mode: "markers" }, 0.5), [{ ...trace, mode: "markers" }]);
});

test("a panel's names keep its order, and a name with a slash stands for all below it", () => {
  const known = ["reward/b", "loss/total", "reward/a", "rewarding/c"];
  assert.deepEqual(namesOf({ names: ["reward/", "loss/total", "loss/none"] }, known), ["reward/a", "reward/b", "loss/total"]);
  assert.deepEqual([wordsOf("rollout/turn_wait_s"), wordsOf("reward/a/b_c")], ["turn wait", "a/b c"]);
  assert.equal(colorName(7), colorName(0));
  assert.equal(new Set([0, 1, 2, 3, 4, 5, 6].map(colorName)).size, 7);
});

test("an alarm is drawn on the charts of its metric only", () => {
  const alarms = [{ metric: "loss/kl" }, { metric: "reward/a" }, { metric: null }];
  assert.deepEqual(alarmsOf({ names: ["loss/kl"] }, alarms), [alarms[0]]);
  assert.deepEqual(alarmsOf({ names: ["reward/"] }, alarms), [alarms[1]]);
  assert.deepEqual(alarmsOf({ names: ["loss/k"] }, alarms), []);
});

test("a short line has its points marked, a long one has not", () => {
  const modeOf = (number) => lineTrace("a", { x: Array(number).fill(0), y: [] }, 0).mode;
  assert.deepEqual([modeOf(39), modeOf(40)], ["lines+markers", "lines"]);
});

test("held-out success is a trace per kind, with its interval as distances", () => {
  const point = { step: 4, success: 0.5, low: 0.25, high: 0.875, num_success: 4, num_samples: 8, name: "held-out" };
  const [sampled, greedy] = evaluationTraces([{ ...point, temperature: 1 }, { ...point, step: 8, temperature: 0, num_at_limit: 2 }]);
  assert.deepEqual([sampled.x, sampled.error_y.array, sampled.error_y.arrayminus], [[4], [0.375], [0.25]]);
  assert.deepEqual([greedy.x, greedy.text], [[8], ["4/8, 2 more at a limit held-out"]]);
  const [graded] = evaluationTraces([{ ...point, temperature: 1, num_at_limit: 2, mean_score: 0.563 }]);
  assert.deepEqual(graded.text, ["4/8, 2 more at a limit, mean score 56 % held-out"]);
  assert.deepEqual(evaluationTraces([{ ...point, temperature: 1 }]).map(({ name }) => name), ["held-out, sampled"]);
});

const layout = (kind, y, more = {}, alarms = []) => layoutOf({ kind, title: "t", names: [], limit: null, ...more }, [{ x: y.map((_, step) => step), y }], alarms);

test("a share is drawn from 0 to 1, whatever its values", () => {
  assert.deepEqual(layout("share", [0.4, 0.41]).yaxis.range, [-0.03, 1.03]);
});

test("a log scale is for positive values that spread", () => {
  assert.equal(layout("log", [1, 100]).yaxis.type, "log");
  assert.equal(layout("log", [1, 9]).yaxis.type, undefined);
  assert.equal(layout("log", [0, 100]).yaxis.type, undefined);
});

test("a constant lies in the middle, and a gap decides no scale", () => {
  assert.deepEqual(layout("line", [4, 4.00001]).yaxis.range.map(Math.round), [0, 8]);
  assert.deepEqual(layout("line", [0, 0]).yaxis.range, [0, 1]);
  assert.deepEqual(layout("line", [3, null, 3]).yaxis.range, [0, 6]);
  assert.equal(layout("line", [1, 2]).yaxis.range, undefined);
});

test("a limit is a line of its own, unless an alarm draws it", () => {
  const alarm = { metric: "a", threshold: 0.8, since: 1, last: 1, is_cleared: true, title: "a", url: "/a" };
  const levels = (alarms) => layout("share", [0, 1], { limit: 0.8 }, alarms).shapes.filter(({ y0 }) => y0 === 0.8).map(({ line }) => line.dash);
  assert.deepEqual([levels([]), levels([alarm])], [["dot"], ["dash"]]);
});

test("an alarm covers its steps: to now while it holds, to its last one when cleared", () => {
  const alarm = { metric: "a", threshold: null, since: 4, last: 6, is_cleared: false, title: "a", url: "/a" };
  const covered = (more) => alarmShapes([{ ...alarm, ...more }], 10).shapes.filter(({ type }) => type === "rect").map(({ x0, x1 }) => [x0, x1]);
  assert.deepEqual([covered({}), covered({ is_cleared: true })], [[[4, 10]], [[4, 6]]]);
  const sideOf = (since) => alarmShapes([{ ...alarm, since }], 10).annotations[0].xanchor;
  assert.deepEqual([sideOf(6), sideOf(7)], ["left", "right"], "late names stay inside the chart");
});

test("marks are a trace per kind that is shown", () => {
  const markers = [{ kind: "checkpoint", step: 2, text: "c2" }, { kind: "resume", step: 3, text: "r" }, { kind: "checkpoint", step: 5, text: "c5" }];
  const shown = markerTraces(markers, (kind) => kind !== "resume");
  assert.deepEqual(shown.map(({ name, x, text }) => [name, x, text]), [["checkpoint", [2, 5], ["c2", "c5"]]]);
  assert.deepEqual([stageOf({ group: "SFT" }), stageOf({ group: "Loss" })], ["sft", "grpo"]);
});
