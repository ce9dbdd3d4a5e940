// Entry of the inference worker. The worker's own query (`?lane=`) is read by the module itself.

import init from "./worker_glue.js";

await init();
