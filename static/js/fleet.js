// The fleet page: live parts.
import { showPill } from "./lib/live.js";
import { startParts } from "./lib/parts.js";

showPill();
startParts();
