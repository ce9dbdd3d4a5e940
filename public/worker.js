// Entry of the inference worker. The worker's own query (`?lane=`) is read by the module itself.

import init from "./worker_glue.js";

// A failed promise does not reach the page by itself; a thrown error does, and the page then says
// that the engine stopped.
self.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  setTimeout(() => {
    throw event.reason;
  });
});

await init();
