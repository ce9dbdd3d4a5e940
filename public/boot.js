// Starts the page: the service worker first, because it may have to give the isolation headers,
// then the app itself. Everything here may fail and the app must still start.

const RELOADED = "tinyrustlm.reloaded-for-isolation";
// The longest the first visit waits for the service worker before it goes on without it.
const WAIT_MS = 8000;

const root = document.documentElement;
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

// At most one reload in the life of a tab. A tab that cannot remember is never reloaded.
function mayReload() {
  try {
    if (sessionStorage.getItem(RELOADED)) return false;
    sessionStorage.setItem(RELOADED, "1");
    return sessionStorage.getItem(RELOADED) === "1";
  } catch {
    return false;
  }
}

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
  if (self.crossOriginIsolated) return false;
  if ((await active(registration)) && mayReload()) {
    location.reload();
    return true;
  }
  return false;
}

async function start() {
  let leaving = false;
  try {
    leaving = await prepare();
  } catch (error) {
    // Private windows and some blockers refuse service workers: then there is no offline start.
    console.warn("no service worker:", error);
  }
  if (leaving) return;
  try {
    const { default: init } = await import("./app.js");
    await init();
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
