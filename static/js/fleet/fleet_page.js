// The fleet pages: operations on desktops, history charts.
import { startOperations } from "./desktop_operations.js";

startOperations();

const charts = document.querySelector("[data-fleet-charts]");
if (charts) import("../charts/history_charts.js").then(({ startHistory }) => startHistory(charts));
