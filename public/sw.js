// The shell without a network, and the isolation headers where the host cannot send them.
// One cache for each build; models are never touched here.

const BUILD = "/*BUILD*/";
const PRECACHE = /*PRECACHE*/[];
const CACHE = `shell-${BUILD}`;
const PAGE = "index.html";

const scope = new URL(self.registration.scope);

// Same-origin opener and embedder policies make the page cross-origin isolated.
function isolated(response) {
  // An opaque or an error response has no headers to add to, and a redirect must stay one.
  if (response.status === 0 || response.type === "opaqueredirect") return response;
  const headers = new Headers(response.headers);
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Embedder-Policy", "require-corp");
  headers.set("Cross-Origin-Resource-Policy", "same-origin");
  const body = [101, 204, 205, 304].includes(response.status) ? null : response.body;
  return new Response(body, { status: response.status, statusText: response.statusText, headers });
}

// All files or none: a shell of mixed builds would be a broken one.
async function precache() {
  const cache = await caches.open(CACHE);
  await Promise.all(
    PRECACHE.map(async (path) => {
      const url = new URL(path, scope);
      const response = await fetch(url, { cache: "no-cache" });
      if (!response.ok) throw new Error(`${path}: ${response.status}`);
      // A redirected response may not answer a navigation, so a plain copy is kept.
      await cache.put(url, isolated(response));
    }),
  );
}

// A page that runs holds a lock with its build's name (`boot.js`), and keeps its files so long.
async function buildsInUse() {
  if (!self.navigator.locks) return null;
  const { held } = await self.navigator.locks.query();
  const prefix = "tinyrustlm-build-";
  return held.filter(({ name }) => name.startsWith(prefix)).map(({ name }) => name.slice(prefix.length));
}

async function forgetOldBuilds() {
  const inUse = (await buildsInUse()) ?? [];
  const kept = [CACHE, ...inUse.map((build) => `shell-${build}`)];
  const names = await caches.keys();
  const old = names.filter((name) => name.startsWith("shell-") && !kept.includes(name));
  await Promise.all(old.map((name) => caches.delete(name)));
}

// Addresses in the cache carry no query. `?lane=` is for the page and the worker; `?build=` names
// the build that the asking page or worker is of, and it gets no other's files while its own are
// here. Where they are gone the server's answer tells it, by the build that stands in `worker.js`.
async function fromShell(request) {
  const asked = new URL(request.url);
  const url = request.mode === "navigate" ? new URL(PAGE, scope) : asked;
  const wanted = asked.searchParams.get("build");
  const foreign = wanted && wanted !== BUILD;
  const name = foreign ? `shell-${wanted}` : CACHE;
  if (!foreign || (await caches.has(name))) {
    const cache = await caches.open(name);
    const kept = await cache.match(url, { ignoreSearch: true });
    if (kept) return kept;
  }
  return isolated(await fetch(request));
}

function ours(request) {
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== scope.origin) return false;
  if (!url.pathname.startsWith(scope.pathname)) return false;
  const path = url.pathname.slice(scope.pathname.length);
  if (path.startsWith("models/")) return false;
  // The way out of a stale shell goes to the server.
  if (url.searchParams.has("fresh")) return false;
  // Only the page itself is answered with the page.
  return request.mode !== "navigate" || path === "" || path === PAGE;
}

self.addEventListener("install", (event) => event.waitUntil(precache()));

self.addEventListener("activate", (event) => {
  event.waitUntil(forgetOldBuilds().then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  if (ours(event.request)) event.respondWith(fromShell(event.request));
});

// A new version takes over only on a person's word. Pages of an earlier build go on with the files
// of their own; when one starts, what nobody uses any more is forgotten.
self.addEventListener("message", (event) => {
  if (event.data === "use-new-version") self.skipWaiting();
  if (event.data === "page-started") event.waitUntil(forgetOldBuilds());
});
