//! What a fetch says while nothing comes, and how it ends when nothing ever can.

#![allow(clippy::unwrap_used)]

#[path = "sharing/place.rs"]
mod place;
#[path = "sharing/programs.rs"]
mod programs;
#[path = "../../e2e/src/sized.rs"]
mod sized;

use std::net::TcpListener;

use format::{Digest, Hasher, ModelId, Root};
use p2p::Invite;
use place::Place;
use serde_json::Value;

const MIB: u64 = 1 << 20;

fn some_model() -> ModelId {
    ModelId {
        root: Root(Digest([0x5a; 32])),
        length: 3 * MIB,
    }
}

fn link(id: ModelId, sources: &[&str], trackers: &[&str]) -> String {
    let owned = |urls: &[&str]| urls.iter().map(|url| (*url).to_owned()).collect();
    let invite = Invite {
        id,
        name: "somewhere".into(),
        sources: owned(sources),
        trackers: owned(trackers),
        offer: None,
    };
    invite.to_text().unwrap()
}

/// An address of this machine where nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Files that a fetch keeps for a later start.
fn left_of(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.folder.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let ends = [".part", ".have", ".pieces"];
    names
        .filter(|name| ends.iter().any(|end| name.ends_with(end)))
        .collect()
}

impl Place {
    /// The exit code of a fetch that ends by itself, and everything that it said.
    fn end_of(&self, link: &str) -> (i32, Vec<String>) {
        let mut fetch = self.fetch(link, "got.slm");
        let code = fetch.end();
        assert!(!self.path("got.slm").exists());
        (code, fetch.said.clone())
    }
}

#[track_caller]
fn says(said: &[String], start: &str, end: &str) {
    let fits = |line: &String| line.starts_with(start) && line.ends_with(end);
    assert!(said.iter().any(fits), "{start:?} .. {end:?}: {said:?}");
}

#[test]
fn a_link_that_names_nobody_is_refused_at_once() {
    let place = Place::new();
    let (code, _) = place.end_of(&link(some_model(), &[], &[]));
    assert_eq!(code, 3);
}

#[test]
fn what_is_no_model_is_refused_after_its_first_piece() {
    let place = Place::new();
    let log = place.path("log");
    let (_server, host) = place.serve(&["--log", log.to_str().unwrap()]);
    // The length of the header stands first, and this one would be longer than the file.
    let junk = vec![0x7f; 3 << 20];
    let mut hasher = Hasher::default();
    hasher.update(&junk);
    let layer = hasher.finish();
    std::fs::write(place.path("app/junk.slm"), &junk).unwrap();
    std::fs::write(place.path("app/junk.slm.pieces"), layer.to_bytes()).unwrap();
    let (code, said) = place.end_of(&link(layer.id, &[&format!("http://{host}/junk.slm")], &[]));
    assert_eq!(code, 3, "{said:?}");
    assert!(!place.path("got.slm").exists());
    let log = std::fs::read_to_string(log).unwrap();
    let asked: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["path"] == "/junk.slm")
        .collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0]["range"], "bytes=0-1048575");
    assert_eq!(left_of(&place), [""; 0]);
}

#[test]
fn a_server_that_nobody_runs_is_named_and_the_fetch_ends() {
    let place = Place::new();
    let url = format!("http://{}/a.slm", nobody());
    let (code, said) = place.end_of(&link(some_model(), &[&url], &[]));
    assert_eq!(code, 1, "{said:?}");
    let why = format!("server {url}: asked for the hashes of pieces, it cannot be reached (");
    says(&said, &why, ")");
    let last = "tinyrustlm: nobody is left who could give it: ";
    says(
        &said,
        last,
        "give the same command again; or ask for a new link.",
    );
    assert_eq!(left_of(&place), [""; 0]);
}

#[test]
fn a_server_without_the_file_is_named_and_the_fetch_ends() {
    let place = Place::new();
    let (_server, host) = place.serve(&[]);
    let url = format!("http://{host}/a.slm");
    let (code, said) = place.end_of(&link(some_model(), &[&url], &[]));
    assert_eq!(code, 3, "{said:?}");
    says(
        &said,
        &format!("server {url}: "),
        "it has no such file (status 404)",
    );
    says(&said, "tinyrustlm: nobody is left", "Ask for a new link.");
}

#[test]
fn a_server_with_another_file_is_named_and_the_fetch_ends() {
    let place = Place::new();
    let (_server, host) = place.serve(&[]);
    let (bytes, url) = (vec![7; 3 << 20], format!("http://{host}/a.slm"));
    let mut hasher = Hasher::default();
    hasher.update(&bytes);
    let layer = hasher.finish();
    std::fs::write(place.path("app/a.slm"), &bytes).unwrap();
    std::fs::write(place.path("app/a.slm.pieces"), layer.to_bytes()).unwrap();

    // The root is another one.
    let (code, said) = place.end_of(&link(some_model(), &[&url], &[]));
    assert_eq!(code, 3, "{said:?}");
    says(
        &said,
        &format!("server {url}: "),
        "what it sent is not of the link's file",
    );

    // The hashes are right, the file is one byte longer.
    std::fs::write(place.path("app/a.slm"), [&bytes[..], &[7]].concat()).unwrap();
    let (code, said) = place.end_of(&link(layer.id, &[&url], &[]));
    assert_eq!(code, 3, "{said:?}");
    says(
        &said,
        &format!("server {url}: "),
        "its file has 3145729 bytes and is not the link's",
    );

    // The length is right, a byte is not.
    let wrong = [&bytes[..bytes.len() - 1], &[8]].concat();
    std::fs::write(
        place.path("app/a.slm"),
        wrong.iter().rev().copied().collect::<Vec<u8>>(),
    )
    .unwrap();
    let (code, said) = place.end_of(&link(layer.id, &[&url], &[]));
    assert_eq!(code, 3, "{said:?}");
    says(
        &said,
        &format!("server {url}: "),
        "what it sent is not of the link's file",
    );
    assert_eq!(left_of(&place), [""; 0]);
}

#[test]
fn a_tracker_that_nobody_runs_is_named_and_the_fetch_ends() {
    let place = Place::new();
    let url = format!("ws://{}/announce", nobody());
    let (code, said) = place.end_of(&link(some_model(), &[], &[&url]));
    assert_eq!(code, 1, "{said:?}");
    let why = format!("tracker {url}: it cannot be reached (");
    says(&said, &why, "); it is tried again");
    says(&said, "tinyrustlm: nobody is left", "ask for a new link.");
}

#[test]
fn who_seeds_is_told_of_a_tracker_that_nobody_runs() {
    let place = Place::new();
    let url = format!("ws://{}/announce", nobody());
    let mut seed = place.seed(&["--tracker", &url]);
    seed.wait_for(&format!("tracker {url}: it cannot be reached ("));
    seed.interrupt();
    assert_eq!(seed.end(), 0);
}

#[test]
fn while_peers_may_come_it_says_so_and_waits_for_ever() {
    let place = Place::new();
    let (_server, host) = place.serve(&[]);
    let tracker = format!("ws://{host}/announce");
    let dead = format!("http://{}/a.slm", nobody());
    let mut fetch = place.fetch(&link(some_model(), &[&dead], &[&tracker]), "got.slm");
    fetch.wait_for(&format!(
        "waiting for peers at tracker {tracker}, which knows none that has all; Ctrl-C ends it"
    ));
    fetch.interrupt();
    assert_eq!(fetch.end(), 130, "{:?}", fetch.said);
    assert_eq!(left_of(&place), [""; 0]);
}

#[test]
fn no_folder_is_made_for_what_comes() {
    let place = Place::new();
    let tracker = format!("ws://{}/announce", nobody());
    let mut fetch = place.fetch(&link(some_model(), &[], &[&tracker]), "nowhere/got.slm");
    assert_eq!(fetch.end(), 2, "{:?}", fetch.said);
    assert!(!place.path("nowhere").exists());
}
