// Starts the page: the service worker first, because it may have to give the isolation headers,
// then the app itself. Everything here may fail and the app must still start.

const RELOADED = "tinyrustlm.reloaded-for-isolation";
const RELOADED_FOR_BUILD = "tinyrustlm.reloaded-for-build";
// The longest the first visit waits for the service worker before it goes on without it.
const WAIT_MS = 8000;

const root = document.documentElement;
// Page, worker and engine carry one name; every request of a running page says it.
const BUILD = root.dataset.build;
const address = new URL(location.href);

// The way out of a stale shell: `?fresh` forgets every cached file and starts from the server.
// Models and conversations are not touched.
async function forgetShell() {
  const registrations = await navigator.serviceWorker.getRegistrations();
  await Promise.all(registrations.map((registration) => registration.unregister()));
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith("shell-")).map((name) => caches.delete(name)));
  address.searchParams.delete("fresh");
  location.replace(address);
}

function active(registration) {
  const worker = registration.installing ?? registration.waiting ?? registration.active;
  return new Promise((resolve) => {
    const look = () => {
      if (registration.active) resolve(true);
      else if (worker.state === "redundant") resolve(false);
    };
    worker.addEventListener("statechange", look);
    setTimeout(() => resolve(false), WAIT_MS);
    look();
  });
}

// At most one reload of a kind for each value. A tab that cannot remember is never reloaded.
function mayReload(kind, value) {
  try {
    if (sessionStorage.getItem(kind) === value) return false;
    sessionStorage.setItem(kind, value);
    return sessionStorage.getItem(kind) === value;
  } catch {
    return false;
  }
}

// The build's files stay in the cache as long as a page that needs them is open.
function holdBuild() {
  const forever = () => new Promise(() => {});
  navigator.locks?.request(`tinyrustlm-build-${BUILD}`, { mode: "shared" }, forever).catch(() => {});
}

// The server changed under the page, and there is no service worker that kept its files.
window.addEventListener("shell-other-build", () => {
  if (mayReload(RELOADED_FOR_BUILD, BUILD)) location.reload();
});

// A new version is offered and waits for a person's word.
function offerUpdates(registration) {
  const offer = () => {
    root.dataset.update = "ready";
    window.dispatchEvent(new Event("shell-update-ready"));
  };
  const follow = (worker) => {
    worker?.addEventListener("statechange", () => {
      if (worker.state === "installed" && navigator.serviceWorker.controller) offer();
    });
  };
  let accepted = false;
  if (registration.waiting && navigator.serviceWorker.controller) offer();
  follow(registration.installing);
  registration.addEventListener("updatefound", () => follow(registration.installing));
  window.addEventListener("shell-update-accepted", () => {
    accepted = true;
    if (registration.waiting) registration.waiting.postMessage("use-new-version");
    else location.reload();
  });
  let controlled = Boolean(navigator.serviceWorker.controller);
  navigator.serviceWorker.addEventListener("controllerchange", () => {
    // The first control of a first visit is no update; another tab's word is only an offer here.
    if (accepted) location.reload();
    else if (controlled) offer();
    controlled = true;
  });
}

// True if the page is about to be loaded again.
async function prepare() {
  if (!("serviceWorker" in navigator)) return false;
  if (address.searchParams.has("fresh")) {
    await forgetShell();
    return true;
  }
  const registration = await navigator.serviceWorker.register("sw.js", { updateViaCache: "none" });
  offerUpdates(registration);
  navigator.serviceWorker.controller?.postMessage("page-started");
  if (self.crossOriginIsolated) return false;
  if ((await active(registration)) && mayReload(RELOADED, "1")) {
    location.reload();
    return true;
  }
  return false;
}

async function start() {
  holdBuild();
  let leaving = false;
  try {
    leaving = await prepare();
  } catch (error) {
    // Private windows and some blockers refuse service workers: then there is no offline start.
    console.warn("no service worker:", error);
  }
  if (leaving) return;
  try {
    const { default: init } = await import(`./app.js?build=${BUILD}`);
    await init({ module_or_path: new URL(`app_bg.wasm?build=${BUILD}`, import.meta.url) });
  } catch (error) {
    root.dataset.state = "failed";
    const words = document.getElementById("first-words");
    if (words) {
      words.id = "error";
      words.textContent =
        typeof WebAssembly === "object"
          ? "The page could not be started. Reload it; if that does not help, open it once with ?fresh at the end of the address."
          : "This browser has no WebAssembly, which the model needs. Please use a newer one.";
    }
    throw error;
  }
}

await start();
