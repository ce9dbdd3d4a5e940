//! What `tinyrustlm serve` tells a browser. Wanted values: the isolation headers of the HTML
//! standard, the media types of the IANA registry, ranges and entity tags of RFC 9110.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use e2e::{Browser, Options, Page, Profile, Server, get, model_slm};
use protocol::{CATALOGUE_SCHEMA, Catalogue, LaneArtifact, ManifestFile};
use serde_json::json;
use serde_json::value::RawValue;

const MODEL: &str = "/models/SmolLM2-135M-Instruct.slm";

#[test]
fn every_answer_isolates_and_forbids_what_is_foreign() {
    let server = Server::start(Options::default()).unwrap();
    for path in [
        "/",
        "/app.js",
        "/models/catalogue.json",
        MODEL,
        "/no/such/file",
    ] {
        let range = [("Range", "bytes=0-9")];
        let reply = get(&server.host, path, &range).unwrap();
        let header = |name| reply.header(name);
        assert_eq!(
            header("cross-origin-opener-policy"),
            "same-origin",
            "{path}"
        );
        assert_eq!(
            header("cross-origin-embedder-policy"),
            "require-corp",
            "{path}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        let policy = header("content-security-policy");
        for part in [
            "default-src 'self'",
            "'wasm-unsafe-eval'",
            "object-src 'none'",
            // Servers that people name, over encrypted connections; scripts and all else stay ours.
            "connect-src 'self' https: wss:;",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe-inline"), "{path}: {policy}");
        assert!(!policy.contains("'unsafe-eval'"), "{path}: {policy}");
    }
}

#[test]
fn without_isolation_headers_only_those_are_missing() {
    let server = Server::start(Options {
        no_isolation_headers: true,
        ..Options::default()
    })
    .unwrap();
    let reply = get(&server.host, "/", &[]).unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("cross-origin-opener-policy"), "");
    assert_eq!(reply.header("cross-origin-embedder-policy"), "");
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
}

#[test]
fn files_have_their_media_types() {
    let server = Server::start(Options::default()).unwrap();
    let manifest = get(&server.host, "/lanes/manifest.json", &[]).unwrap();
    let lanes: ManifestFile<Box<RawValue>> = serde_json::from_slice(&manifest.body).unwrap();
    let first: LaneArtifact = serde_json::from_str(lanes.artifacts[0].signed.get()).unwrap();
    let lane = format!("/lanes/{}", first.url);
    for (path, want) in [
        ("/", "text/html"),
        ("/boot.js", "text/javascript"),
        ("/worker.js", "text/javascript"),
        ("/sw.js", "text/javascript"),
        ("/style.css", "text/css"),
        ("/app_bg.wasm", "application/wasm"),
        (&lane, "application/wasm"),
        ("/manifest.webmanifest", "application/manifest+json"),
        ("/models/catalogue.json", "application/json"),
        (MODEL, "application/octet-stream"),
    ] {
        let reply = get(&server.host, path, &[]).unwrap();
        assert_eq!(reply.status, 200, "{path}");
        let kind = reply.header("content-type");
        assert_eq!(kind.split(';').next(), Some(want), "{path}");
    }
}

#[test]
fn models_come_in_ranges_that_can_be_trusted() {
    let server = Server::start(Options::default()).unwrap();
    let file = std::fs::read(model_slm().unwrap()).unwrap();
    let whole = file.len();
    for (first, last) in [
        (0, 0),
        (0, 1_048_575),
        (1_048_576, 1_048_676),
        (whole - 5, whole - 1),
    ] {
        let range = format!("bytes={first}-{last}");
        let reply = get(&server.host, MODEL, &[("Range", &range)]).unwrap();
        assert_eq!(reply.status, 206, "{range}");
        let want = format!("bytes {first}-{last}/{whole}");
        assert_eq!(reply.header("content-range"), want);
        assert!(reply.body == file[first..=last], "{range}");
    }
    let beyond = format!("bytes={whole}-");
    let reply = get(&server.host, MODEL, &[("Range", &beyond)]).unwrap();
    assert_eq!(reply.status, 416);
}

/// RFC 9110, sections 14.1.2 (a suffix longer than the file is the file), 14.2 (an unknown unit is
/// ignored) and 13.1.5 (a part only of what the client has the beginning of).
#[test]
fn a_part_is_sent_only_to_whom_it_belongs() {
    let server = Server::start(Options::default()).unwrap();
    const SMALL: &str = "/manifest.webmanifest";
    for path in [SMALL, MODEL] {
        let whole = get(&server.host, path, &[]).unwrap();
        let len = whole.body.len();
        let (tag, date) = (whole.header("etag"), whole.header("last-modified"));
        assert!(
            tag.starts_with('"') && !date.is_empty(),
            "{path}: {tag} {date}"
        );

        let suffix = format!("bytes=-{}", len + 1);
        let reply = get(&server.host, path, &[("Range", &suffix)]).unwrap();
        assert_eq!(reply.status, 206, "{path}");
        let all = format!("bytes 0-{}/{len}", len - 1);
        assert_eq!(reply.header("content-range"), all);
        assert!(reply.body == whole.body, "{path}");
        let nothing = get(&server.host, path, &[("Range", "bytes=-0")]).unwrap();
        assert_eq!(nothing.status, 416, "{path}");

        for range in ["lines=1-2", "bytes 0-1"] {
            let reply = get(&server.host, path, &[("Range", range)]).unwrap();
            assert_eq!(
                (reply.status, reply.body.len()),
                (200, len),
                "{path} {range}"
            );
        }
        let reply = get(&server.host, path, &[("Range", "Bytes=1-2")]).unwrap();
        assert!(
            reply.status == 206 && reply.body == whole.body[1..=2],
            "{path}"
        );

        let weak = format!("W/{tag}");
        let never = "Thu, 01 Jan 1970 00:00:00 GMT";
        for (validator, range, status) in [
            (tag, "bytes=1-2", 206),
            (date, "bytes=1-2", 206),
            ("\"another\"", "bytes=1-2", 200),
            (&weak, "bytes=1-2", 200),
            (never, "bytes=1-2", 200),
            ("\"another\"", "bytes=99999999999-", 200),
            (tag, "bytes=99999999999-", 416),
        ] {
            let asked = [("Range", range), ("If-Range", validator)];
            let reply = get(&server.host, path, &asked).unwrap();
            assert_eq!(reply.status, status, "{path} {validator} {range}");
        }
    }
}

#[test]
fn an_unchanged_file_is_not_sent_again() {
    let server = Server::start(Options::default()).unwrap();
    for path in ["/app.js", MODEL] {
        let first = get(&server.host, path, &[]).unwrap();
        let (name, value) = match first.header("etag") {
            "" => ("If-Modified-Since", first.header("last-modified")),
            etag => ("If-None-Match", etag),
        };
        assert!(!value.is_empty(), "{path}: neither ETag nor Last-Modified");
        let second = get(&server.host, path, &[(name, value)]).unwrap();
        assert_eq!(second.status, 304, "{path}");
        assert!(second.body.is_empty(), "{path}");
    }
}

#[test]
fn the_catalogue_offers_the_model_with_its_pieces() {
    let server = Server::start(Options::default()).unwrap();
    let reply = get(&server.host, "/models/catalogue.json", &[]).unwrap();
    let catalogue: Catalogue = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(catalogue.schema, CATALOGUE_SCHEMA);
    let [entry] = catalogue.models.as_slice() else {
        panic!("one model was offered: {catalogue:?}");
    };
    let length = std::fs::metadata(model_slm().unwrap()).unwrap().len();
    assert_eq!(entry.length, length);
    let pieces = format!("/models/{}", entry.pieces_url);
    let pieces = get(&server.host, &pieces, &[]).unwrap();
    assert_eq!(pieces.body.len() as u64, 32 * length.div_ceil(1_048_576));
}

#[test]
fn nothing_outside_the_folders_is_served() {
    let server = Server::start(Options::default()).unwrap();
    for path in [
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "/models/../../Cargo.toml",
        "/models/..%2f..%2fCargo.toml",
        "/models/SmolLM2-135M-Instruct.Q4_1.gguf",
        // What the build left beside the app.
        "/.stamp",
        "/%2Estamp",
        "/%2estamp",
    ] {
        let reply = get(&server.host, path, &[]).unwrap();
        assert!(
            [400, 404].contains(&reply.status),
            "{path}: {}",
            reply.status
        );
    }
}

#[tokio::test]
async fn the_service_worker_isolates_where_the_server_does_not() {
    let server = Server::start(Options {
        no_isolation_headers: true,
        ..Options::default()
    })
    .unwrap();
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start(&profile).await.unwrap();
    let page = Page::open(&browser, &server.url("")).await.unwrap();
    page.wait_state("empty", Duration::from_secs(60))
        .await
        .unwrap();
    let isolated = browser.js("return crossOriginIsolated", &[]).await.unwrap();
    assert_eq!(isolated, json!(true));
    // It stays so, and the page is not loaded again and again for it.
    page.reload().await.unwrap();
    let isolated = browser.js("return crossOriginIsolated", &[]).await.unwrap();
    assert_eq!(isolated, json!(true));
    let pages = server.log().unwrap();
    let pages = pages.iter().filter(|line| line.path == "/").count();
    assert!(pages <= 2, "the page was fetched {pages} times");
}
