//! An answer sent no faster than so many bytes a second.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures_util::StreamExt;

/// Pauses after each part of the body for as long as the part should have taken.
pub fn slow(response: Response, bytes_per_second: u64) -> Response {
    let (parts, body) = response.into_parts();
    let stream = body.into_data_stream().then(move |chunk| async move {
        let len = chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        let nanos = len.saturating_mul(1_000_000_000) / bytes_per_second;
        tokio::time::sleep(Duration::from_nanos(nanos)).await;
        chunk
    });
    Response::from_parts(parts, Body::from_stream(stream))
}
