// Entry of the inference worker. The worker's own query (`?lane=`) is read by the module itself.

import init, { start } from "./worker_glue.js";

// Commands may come while the module is still being compiled; none is lost.
const early = [];
self.onmessage = (event) => early.push(event.data);

await init();
start(early);
