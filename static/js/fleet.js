// The fleet pages: live parts, operations on desktops, history charts.
import { startOperations } from "./fleet_operations.js";
import { showPill } from "./lib/live.js";
import { startParts } from "./lib/parts.js";

showPill();
startParts();
startOperations();

const charts = document.querySelector("[data-fleet-charts]");
if (charts) import("./fleet_charts.js").then(({ startHistory }) => startHistory(charts));
