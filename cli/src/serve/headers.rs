//! Headers on every answer: isolation for threads, a strict content policy, no sniffing.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;

/// Nothing from elsewhere, no inline code; only compiled Wasm besides the app's own scripts.
/// Connections go to any server, because people name servers that models are fetched from; the app
/// by itself asks only its own, which a browser test counts.
const POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; \
    worker-src 'self'; connect-src 'self' https: wss:; img-src 'self' data:; style-src 'self'; \
    object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const ALWAYS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    // Names carry no version, so every answer is asked about; the ETag makes that cheap.
    (header::CACHE_CONTROL, "no-cache"),
];

const ISOLATION: [(HeaderName, &str); 2] = [
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-embedder-policy"),
        "require-corp",
    ),
];

pub fn add(mut response: Response, isolated: bool) -> Response {
    let headers = response.headers_mut();
    let isolation = ISOLATION.into_iter().filter(|_| isolated);
    for (name, value) in ALWAYS.into_iter().chain(isolation) {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
