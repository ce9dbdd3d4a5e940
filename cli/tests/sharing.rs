//! One native program gives a model to another: with a tracker, without any server, from servers
//! and peers at once, in spite of liars and interruptions.
//!
//! The tracker protocol is held against npm `bittorrent-tracker`, the torrent against libtorrent;
//! `scripts/setup tests` installs both.

#![allow(clippy::unwrap_used)]

#[path = "sharing/programs.rs"]
mod programs;
#[path = "../../e2e/src/sized.rs"]
mod sized;

use std::path::{Path, PathBuf};
use std::process::Command;

use programs::{Running, model, peers, program, script};
use serde_json::Value;
use tempfile::TempDir;

/// Only loopback: the tests of one machine are nobody else's business.
const HERE: [&str; 2] = ["--listen", "127.0.0.1"];

struct Place {
    folder: TempDir,
    slm: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let slm = model(folder.path(), 1);
        Place { folder, slm }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn seed(&self, more: &[&str]) -> Running {
        Running::start(program().arg("seed").arg(&self.slm).args(HERE).args(more))
    }

    fn fetch(&self, link: &str, to: &str) -> Running {
        let to = self.path(to);
        Running::start(program().args(["fetch", link]).args(HERE).arg("-o").arg(to))
    }

    /// The app is a page that says nothing; the tracker and the models are real.
    fn serve(&self, more: &[&str]) -> (Running, String) {
        let app = self.path("app");
        std::fs::create_dir_all(&app).unwrap();
        std::fs::write(app.join("index.html"), "").unwrap();
        let mut command = program();
        command
            .arg("serve")
            .arg("--app")
            .arg(&app)
            .args(["--port", "0"])
            .args(more);
        let mut server = Running::start(&mut command);
        let host = server.wait_for("TinyRustLM is at http://");
        (server, host)
    }

    #[track_caller]
    fn is_the_same(&self, name: &str) {
        let (got, sent) = (self.path(name), &self.slm);
        assert!(std::fs::read(got).unwrap() == std::fs::read(sent).unwrap());
    }

    fn length(&self) -> u64 {
        std::fs::metadata(&self.slm).unwrap().len()
    }
}

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

/// Bytes of the pieces that lie in a file that arrives: those that are not all zero.
fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let part = entries
        .into_iter()
        .find(|path| path.extension().is_some_and(|it| it == "part"));
    let bytes = part
        .map(|part| std::fs::read(part).unwrap())
        .unwrap_or_default();
    let pieces = bytes
        .chunks(1 << 20)
        .filter(|piece| piece.iter().any(|byte| *byte != 0));
    pieces.map(|piece| piece.len() as u64).sum()
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
    let wait = |bytes: u64| {
        while bytes_in(place.folder.path()) < bytes {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    wait(1);
    drop(seed);
    let _another = place.seed(&slow);
    wait(2 << 20);
    fetch.interrupt();
    assert_eq!(fetch.end(), 3, "{:?}", fetch.said);
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
