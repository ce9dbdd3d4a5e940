//! One native program gives a model to another: with a tracker, without any server, from servers
//! and peers at once, in spite of liars and interruptions.
//!
//! The tracker protocol is held against npm `bittorrent-tracker`, the torrent against libtorrent;
//! `scripts/setup tests` installs both.

#![allow(clippy::unwrap_used)]

#[path = "sharing/place.rs"]
mod place;
#[path = "sharing/programs.rs"]
mod programs;
#[path = "../../e2e/src/sized.rs"]
mod sized;

use std::path::{Path, PathBuf};
use std::process::Command;

use place::Place;
use programs::{Running, peers, program, script};
use serde_json::Value;

fn reference_tracker() -> (Running, String) {
    let folder = peers().join("bittorrent-tracker");
    let mut command = Command::new("node");
    command.arg(script("tracker.mjs")).arg(folder).arg("server");
    let mut server = Running::start(&mut command);
    let port = server.wait_for("port ");
    (server, format!("ws://127.0.0.1:{port}"))
}

/// Bytes from peers, from servers, and given to others, as `fetch` says at its end.
fn amounts(fetch: &Running) -> [u64; 3] {
    let line = fetch
        .said
        .iter()
        .find(|line| line.contains(" from peers, "))
        .unwrap();
    let (_, amounts) = line.rsplit_once('(').unwrap();
    let numbers = amounts.split(' ').filter_map(|word| word.parse().ok());
    numbers.collect::<Vec<u64>>().try_into().unwrap()
}

/// Whether a line has four numbers with points between.
fn has_address(line: &str) -> bool {
    let words = line.split(|char: char| !char.is_ascii_digit() && char != '.');
    let mut words = words.map(|word| word.split('.').filter(|part| !part.is_empty()).count());
    words.any(|parts| parts >= 4)
}

#[test]
fn a_model_comes_over_our_own_tracker() {
    let place = Place::new();
    let log = place.path("log");
    let (_server, host) = place.serve(&["--log", log.to_str().unwrap()]);
    let mut seed = place.seed(&["--tracker", &format!("ws://{host}/announce")]);
    let link = seed.wait_for("Link: ");
    let mut fetch = place.fetch(&link, "got.slm");
    assert_eq!(fetch.end(), 0, "{:?}", fetch.said);
    place.is_the_same("got.slm");
    assert_eq!(amounts(&fetch), [place.length(), 0, 0]);
    // What it is, before its weights came.
    let facts: Vec<&str> = fetch.said.iter().map(String::as_str).take(3).collect();
    assert!(facts[0].starts_with("source-1: "), "{facts:?}");
    assert_eq!(facts[1], "Licence: not named");
    assert!(facts[2].starts_with("Memory to run it: "), "{facts:?}");
    seed.interrupt();
    assert_eq!(seed.end(), 0);
    // Of all that is said and written, only the link names an address: the tracker's.
    let written = std::fs::read_to_string(&log).unwrap_or_default();
    let said = seed
        .said
        .iter()
        .chain(&fetch.said)
        .map(String::as_str)
        .chain(written.lines());
    for line in said.filter(|line| !line.starts_with("Link: ")) {
        assert!(!has_address(line), "{line}");
    }
    // Nothing is left beside the model.
    let left = std::fs::read_dir(place.folder.path()).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(
        !left
            .into_iter()
            .any(|name| name.ends_with(".part") || name.ends_with(".have"))
    );
}

#[test]
fn a_model_comes_over_the_reference_tracker() {
    let place = Place::new();
    let (tracker, url) = reference_tracker();
    // The one who wants it may be there first.
    let mut seed = place.seed(&["--tracker", &url]);
    let link = seed.wait_for("Link: ");
    drop(seed);
    let mut fetch = place.fetch(&link, "got.slm");
    let _seed = place.seed(&["--tracker", &url]);
    assert_eq!(fetch.end(), 0, "{:?}", fetch.said);
    place.is_the_same("got.slm");
    assert!(
        !tracker.said.iter().any(|line| line.starts_with("warning")),
        "{:?}",
        tracker.said
    );
}

#[test]
fn reference_clients_meet_at_our_tracker() {
    let place = Place::new();
    let (_server, host) = place.serve(&[]);
    let mut command = Command::new("node");
    command
        .arg(script("tracker.mjs"))
        .arg(peers().join("bittorrent-tracker"));
    let mut clients = Running::start(command.args(["client", &format!("ws://{host}/announce")]));
    assert_eq!(clients.end(), 0, "{:?}", clients.said);
    let expected = [
        "first: 1 0 120".to_owned(),
        format!("offer: bb{} from me", "0".repeat(38)),
        format!("answer: aa{} to from me", "0".repeat(38)),
        "scrape: 2 0 1".to_owned(),
    ];
    assert_eq!(clients.said, expected);
}

#[test]
fn a_model_comes_by_codes_alone() {
    let place = Place::new();
    let mut seed = place.seed(&["--manual"]);
    let link = seed.wait_for("Link, for one person: ");
    let mut fetch = place.fetch(&link, "got.slm");
    let answer = fetch.wait_for("Answer, to be given back: ");
    seed.say("no answer");
    seed.wait_for("That cannot be used: ");
    seed.say(&answer);
    assert_eq!(fetch.end(), 0, "{:?}", fetch.said);
    place.is_the_same("got.slm");
}

#[test]
fn a_liar_is_named_and_the_model_comes_from_another() {
    let place = Place::new();
    let (_server, host) = place.serve(&[]);
    let tracker = format!("ws://{host}/announce");
    let mut liar = place.seed(&["--tracker", &tracker, "--lie"]);
    let link = liar.wait_for("Link: ");
    let mut fetch = place.fetch(&link, "got.slm");
    let named = fetch.wait_for("left peer ");
    assert!(named.contains("it sent wrong "), "{named}");
    assert!(!place.path("got.slm").exists());
    let _seed = place.seed(&["--tracker", &tracker]);
    assert_eq!(fetch.end(), 0, "{:?}", fetch.said);
    place.is_the_same("got.slm");
}

/// What has come of a file, if anything has.
fn part(folder: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(folder).unwrap();
    entries.find_map(|entry| {
        let path = entry.unwrap().path();
        path.extension()
            .is_some_and(|it| it == "part")
            .then_some(path)
    })
}

/// Bytes of the pieces that lie in a file that arrives: those that are not all zero.
fn bytes_in(folder: &Path) -> u64 {
    let bytes = part(folder).map(|part| std::fs::read(part).unwrap());
    let bytes = bytes.unwrap_or_default();
    let pieces = bytes
        .chunks(1 << 20)
        .filter(|piece| piece.iter().any(|byte| *byte != 0));
    pieces.map(|piece| piece.len() as u64).sum()
}

fn wait_for_bytes(place: &Place, bytes: u64) {
    while bytes_in(place.folder.path()) < bytes {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Also one that two earlier starts have vouched for: nobody hashes the file again afterwards.
#[test]
fn a_piece_that_was_damaged_meanwhile_comes_again() {
    let place = Place::new();
    let (_server, host) = place.serve(&[]);
    let tracker = format!("ws://{host}/announce");
    let mut seed = place.seed(&["--tracker", &tracker, "--upload", "1500000"]);
    let link = seed.wait_for("Link: ");
    let mut first_come = None;
    for start in 1..=2 {
        let mut fetch = place.fetch(&link, "got.slm");
        wait_for_bytes(&place, start * (2 << 20));
        fetch.interrupt();
        assert_eq!(fetch.end(), 130, "{:?}", fetch.said);
        let bytes = std::fs::read(part(place.folder.path()).unwrap()).unwrap();
        let is_here = |piece: &[u8]| piece.iter().any(|byte| *byte != 0);
        first_come = first_come.or(bytes.chunks(1 << 20).position(is_here));
    }
    let path = part(place.folder.path()).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(first_come.unwrap() << 20) + 12_345] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let mut last = place.fetch(&link, "got.slm");
    assert_eq!(last.end(), 0, "{:?}", last.said);
    place.is_the_same("got.slm");
}

#[test]
fn it_goes_on_with_another_source_and_where_it_was_interrupted() {
    let place = Place::new();
    let (_server, host) = place.serve(&[]);
    let tracker = format!("ws://{host}/announce");
    let slow = ["--tracker", &tracker, "--upload", "1500000"];
    let mut seed = place.seed(&slow);
    let link = seed.wait_for("Link: ");
    let mut fetch = place.fetch(&link, "got.slm");
    wait_for_bytes(&place, 1);
    drop(seed);
    let _another = place.seed(&slow);
    wait_for_bytes(&place, 2 << 20);
    fetch.interrupt();
    assert_eq!(fetch.end(), 130, "{:?}", fetch.said);
    assert!(!place.path("got.slm").exists());
    let here = bytes_in(place.folder.path());
    let mut again = place.fetch(&link, "got.slm");
    assert_eq!(again.end(), 0, "{:?}", again.said);
    place.is_the_same("got.slm");
    assert_eq!(amounts(&again), [place.length() - here, 0, 0]);
    // Nothing is written over.
    let mut third = place.fetch(&link, "got.slm");
    assert_eq!(third.end(), 2);
}

#[test]
fn servers_and_peers_give_at_once() {
    let place = Place::new();
    let models = place.path("models");
    std::fs::create_dir(&models).unwrap();
    std::fs::copy(&place.slm, models.join("a model.slm")).unwrap();
    let folder = models.to_str().unwrap();
    let (mut server, host) = place.serve(&["--models", folder, "--throttle", "400000"]);
    let link = server.wait_for("Link to source-1: ");
    assert!(link.starts_with(&format!("http://{host}/#slm1=")), "{link}");
    let _seed = place.seed(&[
        "--tracker",
        &format!("ws://{host}/announce"),
        "--upload",
        "1500000",
    ]);
    let mut fetch = place.fetch(&link, "got.slm");
    assert_eq!(fetch.end(), 0, "{:?}", fetch.said);
    place.is_the_same("got.slm");
    let [from_peers, from_servers, given] = amounts(&fetch);
    assert!(from_peers > 0 && from_servers > 0, "{:?}", fetch.said);
    assert_eq!(given, 0, "who only fetches gives nothing");
}

#[test]
fn libtorrent_takes_the_torrent_and_finds_the_same_root() {
    let place = Place::new();
    let torrent = place.path("a.torrent");
    let source = "http://127.0.0.1:9/model-1.slm";
    let mut command = program();
    command
        .arg("torrent")
        .arg(&place.slm)
        .args(["--source", source])
        .arg("-o")
        .arg(&torrent);
    let mut made = Running::start(&mut command);
    let root = made.wait_for(&format!("{}: root ", torrent.display()));
    let python = peers().join("libtorrent/bin/python");
    let mut command = Command::new(python);
    command
        .arg(script("torrent.py"))
        .arg(&torrent)
        .arg(place.folder.path());
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    let found: Value = serde_json::from_slice(&output.stdout).expect(&words);
    let expected = serde_json::json!({
        "v1": true, "v2": true, "root": root, "length": place.length(), "piece_length": 1 << 20,
        "name": "model-1.slm", "seeds": [source], "done": place.length(), "is_seeding": true,
    });
    assert_eq!(found, expected);
}
