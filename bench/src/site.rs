//! Files for the pages of other engines, with the headers that give a page threads.

use std::path::Path;

use axum::Router;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware;
use axum::response::Response;
use tower_http::services::ServeDir;

use crate::error::{BenchError, Result};

const HEADERS: [(&str, &str); 3] = [
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Serves until the program ends; answers the address, which ends with a slash.
pub async fn serve(peers: &Path) -> Result<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let packages = |name: &str| ServeDir::new(peers.join(name).join("node_modules"));
    let router = Router::new()
        .nest_service("/wllama2", packages("wllama2"))
        .nest_service("/wllama3", packages("wllama3"))
        .nest_service("/models", ServeDir::new(peers.join("models")))
        .fallback_service(ServeDir::new(page))
        .layer(middleware::map_response(isolate));
    let any = "127.0.0.1:0";
    let failed = || BenchError::io(Path::new(any));
    let listener = tokio::net::TcpListener::bind(any).await.map_err(failed())?;
    let address = listener.local_addr().map_err(failed())?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(format!("http://{address}/"))
}

async fn isolate(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}
