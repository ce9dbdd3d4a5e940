//! Ranges as RFC 9110 wants them, around file services that know only single ranges of bytes.

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

pub async fn answer(request: Request, next: Next) -> Response {
    // Without a body, as every request for a file is.
    let (mut parts, _) = request.into_parts();
    let range = parts.headers.remove(header::RANGE);
    let if_range = parts.headers.remove(header::IF_RANGE);
    let range = range.filter(|_| parts.method == Method::GET);
    let Some(range) = range.as_ref().and_then(understood) else {
        return whole(parts, next).await;
    };
    let response = part(&parts, &next, &range).await;
    match (response.status(), if_range) {
        // What the client has the beginning of is another file.
        (StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE, Some(validator))
            if !is_current(&validator, response.headers()) =>
        {
            whole(parts, next).await
        }
        (StatusCode::RANGE_NOT_SATISFIABLE, _) if is_long_suffix(&range, response.headers()) => {
            part(&parts, &next, "bytes=0-").await
        }
        _ => response,
    }
}

async fn whole(parts: Parts, next: Next) -> Response {
    next.run(Request::from_parts(parts, Body::empty())).await
}

async fn part(parts: &Parts, next: &Next, range: &str) -> Response {
    let mut parts = parts.clone();
    if let Ok(range) = HeaderValue::from_str(range) {
        parts.headers.insert(header::RANGE, range);
    }
    whole(parts, next.clone()).await
}

/// One range of bytes; another unit must be ignored, and several ranges may be.
fn understood(range: &HeaderValue) -> Option<String> {
    let (unit, range) = range.to_str().ok()?.split_once('=')?;
    let is_one = unit.eq_ignore_ascii_case("bytes") && !range.contains(',');
    is_one.then(|| format!("bytes={range}"))
}

/// Whether the validator is that of the file as it is. A weak tag is that of no bytes.
fn is_current(validator: &HeaderValue, headers: &HeaderMap) -> bool {
    let is_weak = validator.as_bytes().starts_with(b"W/");
    let current = [header::ETAG, header::LAST_MODIFIED];
    let mut current = current.iter().filter_map(|name| headers.get(name));
    !is_weak && current.any(|current| current == validator)
}

/// The last so many bytes of a file that has fewer: all of it.
fn is_long_suffix(range: &str, headers: &HeaderMap) -> bool {
    let wanted = range.strip_prefix("bytes=-").map(str::parse::<u64>);
    let len = headers.get(header::CONTENT_RANGE);
    let len = len.and_then(|len| len.to_str().ok()?.strip_prefix("bytes */")?.parse().ok());
    matches!((wanted, len), (Some(Ok(wanted)), Some(len)) if len > 0 && wanted > len)
}
