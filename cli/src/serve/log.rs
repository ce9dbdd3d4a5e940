//! One JSON line for every request.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;

use crate::failure::Failure;

pub struct Log(Mutex<File>);

impl Log {
    pub fn open(path: &Path) -> Result<Log, Failure> {
        let file = File::options().create(true).append(true).open(path);
        Ok(Log(Mutex::new(
            file.map_err(|error| Failure::file(path, &error))?,
        )))
    }

    fn line(&self, line: &serde_json::Value) {
        let mut file = match self.0.lock() {
            Ok(file) => file,
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Err(error) = writeln!(file, "{line}") {
            eprintln!("the request log cannot be written: {error}");
        }
    }
}

pub async fn record(State(log): State<Arc<Log>>, request: Request, next: Next) -> Response {
    let method = request.method().to_string();
    let path = request.uri().path().to_owned();
    let range = request.headers().get(header::RANGE);
    let range = range
        .and_then(|range| range.to_str().ok())
        .map(str::to_owned);
    let response = next.run(request).await;
    log.line(&serde_json::json!({
        "method": method,
        "path": path,
        "range": range,
        "status": response.status().as_u16(),
    }));
    response
}
