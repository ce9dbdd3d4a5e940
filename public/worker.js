// Entry of the inference worker. The worker's own query (`?lane=`) is read by the module itself.

const BUILD = "/*BUILD*/";
self.tinyrustlmBuild = BUILD;

// What the page says before the module hears is kept for it.
const early = [];
self.onmessage = (message) => early.push(message);

// A failed promise does not reach the page by itself; a thrown error does, and the page then says
// that the engine stopped.
self.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  setTimeout(() => {
    throw event.reason;
  });
});

// A page of another build gets no worker that it could not understand, but the build's name.
const wanted = new URL(location.href).searchParams.get("build");
if (wanted && wanted !== BUILD) {
  self.postMessage(["build", BUILD]);
  self.close();
} else {
  const { default: init } = await import(`./worker_glue.js?build=${BUILD}`);
  await init({ module_or_path: new URL(`worker_glue_bg.wasm?build=${BUILD}`, import.meta.url) });
  for (const message of early) self.onmessage(message);
}
