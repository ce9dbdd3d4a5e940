//! A model of a catalogue that several servers have: when one fails the next is taken, what was
//! verified is not fetched again, and every failure names its server.

mod world;

use format::PIECE_BYTES;
use protocol::{Command, Event, ImportId, ImportSource, PublishedSource, TrResult};
use worker::SourceFault;
use world::models::{Stored, wide};
use world::{World, imported, refused};

const SECOND: &str = "https://second.example/m/wide.slm";
const THIRD: &str = "https://third.example/wide.slm";

fn layer_at(url: &str) -> String {
    format!("{url}.pieces")
}

/// Offered by this server and two others.
fn ask(world: &mut World, model: &Stored, import: u32) -> ImportId {
    let mut entry = model.entry();
    entry.others = [SECOND, THIRD]
        .map(|url| PublishedSource {
            url: url.into(),
            pieces_url: layer_at(url),
        })
        .into();
    let import = ImportId(import);
    let source = ImportSource::Catalogue(entry);
    world.command(Command::Import { import, source });
    import
}

fn serve_all(world: &mut World, model: &Stored) {
    world.serve(model);
    for url in [SECOND, THIRD] {
        let layer = model.layer.to_bytes();
        world.server.insert(url.into(), model.file.clone());
        world.server.insert(layer_at(url), layer);
    }
}

/// How often each piece was asked for, of all servers together.
fn asked_of_all(world: &World, model: &Stored) -> Vec<u32> {
    let mut times = vec![0; model.id().pieces() as usize];
    for url in [model.url.as_str(), SECOND, THIRD] {
        for (piece, count) in world.pieces_asked(url) {
            times[piece as usize] += count;
        }
    }
    times
}

#[test]
fn whatever_is_wrong_with_one_source_the_next_one_is_taken() {
    let model = wide();
    let page = || b"<!doctype html><title>Gone</title>".repeat(40_000);
    let mut wrong_layer = model.layer.to_bytes();
    wrong_layer[40] ^= 1;
    let mut wrong_head = model.file.clone();
    wrong_head[PIECE_BYTES as usize - 1] ^= 1;
    let mut cut = model.file.clone();
    cut.truncate(5_000_000);
    type Spoil = Box<dyn Fn(&mut World)>;
    let put = |url: &str, bytes: Vec<u8>| -> Spoil {
        let url = url.to_owned();
        Box::new(move |world| drop(world.server.insert(url.clone(), bytes.clone())))
    };
    let fail = |url: &str, fault: SourceFault| -> Spoil {
        let url = url.to_owned();
        Box::new(move |world| drop(world.faults.insert(url.clone(), fault.clone())))
    };
    let first = model.url.as_str();
    let layer = model.pieces_url();
    for (spoil, what) in [
        (
            fail(&layer, SourceFault::Status(404)),
            "a layer that is not there",
        ),
        (
            fail(&layer, SourceFault::Unreachable),
            "a layer out of reach",
        ),
        (put(&layer, page()), "a page for a layer"),
        (put(&layer, wrong_layer), "a wrong layer"),
        (fail(first, SourceFault::Status(403)), "a refusal"),
        (fail(first, SourceFault::Status(503)), "a busy server"),
        (
            fail(first, SourceFault::Unreachable),
            "a server out of reach",
        ),
        (put(first, page()), "a page"),
        (put(first, cut), "a shorter file"),
        (put(first, wrong_head), "a wrong first piece"),
    ] {
        let mut world = World::new();
        serve_all(&mut world, &model);
        spoil(&mut world);
        let import = ask(&mut world, &model, 1);
        world.run();
        let (summary, _) = imported(world.last_of(import));
        assert_eq!(summary.id, model.id(), "{what}");
        assert!(!world.pieces_asked(SECOND).is_empty(), "{what}");
        assert!(world.pieces_asked(THIRD).is_empty(), "{what}");
        assert_eq!(world.names().len(), 2, "{what}");
    }
}

/// In the middle of the file: the pieces before it are not asked for again.
#[test]
fn a_source_that_fails_midway_costs_no_verified_piece() {
    let model = wide();
    for fault in [SourceFault::Status(404), SourceFault::Unreachable] {
        let mut world = World::new();
        serve_all(&mut world, &model);
        let import = ask(&mut world, &model, 1);
        world.run_until(|event| matches!(event, Event::Import(p) if p.pieces >= 5));
        world.faults.insert(model.url.clone(), fault);
        world.run();
        imported(world.last_of(import));
        let asked = asked_of_all(&world, &model);
        assert!(asked[..5].iter().all(|times| *times == 1), "{asked:?}");
        let of_second = world.pieces_asked(SECOND);
        assert!(of_second.keys().all(|piece| *piece >= 5), "{of_second:?}");
    }
}

/// A piece that comes wrong from one server is taken from another, and no other piece with it.
#[test]
fn wrong_bytes_name_their_source_and_come_from_another() {
    let model = wide();
    let mut world = World::new();
    serve_all(&mut world, &model);
    let mut file = model.file.clone();
    file[7 * PIECE_BYTES as usize + 9] ^= 1;
    world.server.insert(SECOND.into(), file.clone());
    world
        .faults
        .insert(model.url.clone(), SourceFault::Status(410));
    let import = ask(&mut world, &model, 1);
    world.run();
    imported(world.last_of(import));
    let of_third = world.pieces_asked(THIRD);
    assert!(of_third.contains_key(&7), "{of_third:?}");
    // Those that had come before the wrong one are not among them.
    assert!(!of_third.contains_key(&0), "{of_third:?}");
    world.command(Command::Diagnostics);
    let Some(Event::Diagnostics(told)) = world.events.last() else {
        panic!("{:?}", world.events.last());
    };
    let kept: Vec<&str> = told
        .records
        .iter()
        .map(|it| it.report.what.as_str())
        .collect();
    let names = |what: &str, host: &str| {
        let found = kept.iter().any(|it| it.contains(what) && it.contains(host));
        assert!(found, "{what} of {host}: {kept:?}");
    };
    names("410", "This server");
    names("iece 7", "second.example");
}

#[test]
fn when_all_have_failed_each_is_named() {
    let model = wide();
    let mut world = World::new();
    serve_all(&mut world, &model);
    let fault = |code| SourceFault::Status(code);
    world.faults.insert(model.url.clone(), fault(404));
    world.faults.insert(SECOND.into(), fault(403));
    let mut file = model.file.clone();
    file[3 * PIECE_BYTES as usize] ^= 0x80;
    world.server.insert(THIRD.into(), file);
    let import = ask(&mut world, &model, 1);
    world.run();
    let error = refused(world.last_of(import));
    assert_eq!(error.code, TrResult::HashMismatch);
    for words in [
        "3 sources",
        "This server",
        "404",
        "second.example",
        "403",
        "third.example",
        "iece 3",
    ] {
        assert!(error.what.contains(words), "{words}: {error:?}");
    }
    // What the last one gave and was right is there when it is tried again.
    world.faults.clear();
    world.asked.clear();
    let import = ask(&mut world, &model, 2);
    world.run();
    imported(world.last_of(import));
    assert!(!world.pieces_asked(&model.url).contains_key(&0));
}

/// A server that is only busy is left for the next one, and asked again when that one fails.
#[test]
fn a_busy_source_is_the_last_resort() {
    let model = wide();
    let mut world = World::new();
    serve_all(&mut world, &model);
    world
        .faults
        .insert(model.url.clone(), SourceFault::Status(503));
    let import = ask(&mut world, &model, 1);
    world.run_until(|event| matches!(event, Event::Import(p) if p.pieces >= 3));
    world.faults.insert(SECOND.into(), SourceFault::Status(404));
    world.faults.insert(THIRD.into(), SourceFault::Status(404));
    world.faults.remove(&model.url);
    world.run();
    imported(world.last_of(import));
    assert!(world.pieces_asked(&model.url).len() > 1);
}
