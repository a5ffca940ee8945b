// The trajectory list: the status of those that have not ended follows their events.
import { showPill } from "./lib/live.js";
import { startParts } from "./lib/parts.js";

if (startParts().length) showPill();
