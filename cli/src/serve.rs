//! The app, the models, the headers that a browser needs and a tracker, on one port.

mod headers;
mod log;
mod offers;
mod ranges;
mod throttle;
mod tracker;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower_http::services::{ServeDir, ServeFile};

use format::ModelId;
use p2p::Invite;
use protocol::CatalogueEntry;

use crate::args::Serve;
use crate::failure::Failure;
use offers::Offers;
use tracker::Tracker;

/// Where the tracker listens.
const TRACKER_PATH: &str = "/announce";

pub fn serve(args: &Serve) -> Result<(), Failure> {
    if !args.app.join("index.html").is_file() {
        return Err(Failure::Usage(format!(
            "{} has no index.html; build the app first (./run does) or name its folder with --app",
            args.app.display()
        )));
    }
    let offers = match &args.models {
        Some(folder) => Offers::collect(folder)?,
        None => Offers::none(),
    };
    let runtime = tokio::runtime::Runtime::new().map_err(|e| Failure::Machine(e.to_string()))?;
    runtime.block_on(listen(args, offers))
}

async fn listen(args: &Serve, offers: Offers) -> Result<(), Failure> {
    let address = SocketAddr::new(args.host, args.port);
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .map_err(|error| Failure::Machine(format!("cannot listen on {address}: {error}")))?;
    let bound = listener
        .local_addr()
        .map_err(|error| Failure::Machine(error.to_string()))?;
    let models: Vec<&str> = offers
        .catalogue
        .models
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    println!("TinyRustLM is at http://{bound}");
    println!(
        "Models offered: {}",
        if models.is_empty() {
            "none".into()
        } else {
            models.join(", ")
        }
    );
    let public = args
        .public
        .clone()
        .unwrap_or_else(|| format!("http://{}", reachable(bound)));
    for entry in &offers.catalogue.models {
        println!(
            "Link to {}: {}",
            entry.name,
            link(public.trim_end_matches('/'), entry)?
        );
    }
    println!("Open the address in a browser. Ctrl-C stops.");
    let router = router(args, offers)?;
    axum::serve(listener, router)
        .with_graceful_shutdown(async {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
        .await
        .map_err(|error| Failure::Machine(error.to_string()))
}

/// Where others find what listens on every address of this machine.
fn reachable(bound: SocketAddr) -> SocketAddr {
    match crate::share::own_address().filter(|_| bound.ip().is_unspecified()) {
        Some(address) => SocketAddr::new(address, bound.port()),
        None => bound,
    }
}

/// Opens the app with an invite to one of the models here: this server has the file, and its
/// tracker knows who else has.
fn link(public: &str, entry: &CatalogueEntry) -> Result<String, Failure> {
    let tracker = match public.strip_prefix("http") {
        Some(rest) => format!("ws{rest}{TRACKER_PATH}"),
        None => {
            return Err(Failure::Usage(
                "--public is an http:// or https:// address".into(),
            ));
        }
    };
    let invite = Invite {
        id: ModelId {
            root: entry.root,
            length: entry.length,
        },
        name: entry.name.clone(),
        sources: vec![format!("{public}/models/{}", escape(&entry.url))],
        trackers: vec![tracker],
        offer: None,
    };
    crate::share::seed::link(Some(&format!("{public}/")), &invite)
}

/// A file name as part of an address.
fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

fn router(args: &Serve, offers: Offers) -> Result<Router, Failure> {
    let isolated = !args.no_isolation_headers;
    let tracker = Tracker::new()?;
    tokio::spawn(tracker.clone().sweep());
    let mut router = Router::new()
        .route("/models/{file}", get(model_file))
        .with_state(Arc::new(offers))
        .fallback_service(ServeDir::new(&args.app))
        .layer(middleware::from_fn(ranges::answer))
        .layer(middleware::from_fn(hide_dots))
        .layer(middleware::map_response(
            move |response: Response| async move { headers::add(response, isolated) },
        ));
    if let Some(rate) = args.throttle {
        router = router.layer(middleware::map_response(
            move |response: Response| async move { throttle::slow(response, rate) },
        ));
    }
    if let Some(path) = &args.log {
        let log = Arc::new(log::Log::open(path)?);
        router = router.layer(middleware::from_fn_with_state(log, log::record));
    }
    // Outside of those layers: it is no file, and who is there is nobody else's business.
    let tracker = Router::new()
        .route(TRACKER_PATH, get(tracker::announce))
        .with_state(tracker);
    Ok(tracker.merge(router))
}

/// What begins with a dot was left beside the app by whoever built it, and is nobody else's.
async fn hide_dots(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_ascii_lowercase();
    let mut names = path.split('/');
    match names.any(|name| name.starts_with('.') || name.starts_with("%2e")) {
        true => (StatusCode::NOT_FOUND, "no such file").into_response(),
        false => next.run(request).await,
    }
}

/// The catalogue, a model, or a model's piece hashes; other files of the folder are not served.
async fn model_file(
    State(offers): State<Arc<Offers>>,
    Path(file): Path<String>,
    request: Request,
) -> Response {
    if file == "catalogue.json" {
        let json = [(header::CONTENT_TYPE, "application/json")];
        return (json, offers.json.clone()).into_response();
    }
    if let Some(pieces) = offers.pieces.get(&file) {
        let bytes = [(header::CONTENT_TYPE, "application/octet-stream")];
        return (bytes, pieces.clone()).into_response();
    }
    let Some(path) = offers.files.get(&file) else {
        return (StatusCode::NOT_FOUND, "no such model").into_response();
    };
    match ServeFile::new(path).try_call(request).await {
        Ok(response) => {
            let mut response = response.into_response();
            // The file's ending is taken for that of a text.
            if response.status().is_success() {
                let bytes = HeaderValue::from_static("application/octet-stream");
                response.headers_mut().insert(header::CONTENT_TYPE, bytes);
            }
            response
        }
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the file cannot be read").into_response(),
    }
}
