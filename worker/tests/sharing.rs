//! Models from browser to browser, between two sessions: what arrives, what is refused, what goes
//! on after an interruption. The peers themselves are proved in `p2p`.
#![allow(clippy::unwrap_used)]

mod world;

use protocol::{Command, Event, InvitedModel, Subject, SwarmCommand, SwarmEvent, SwarmStatus};
use store::names;
use world::models::{small, wide};
use world::peers::{connect, talk};
use world::{World, imported, refused};

const ALWAYS: usize = usize::MAX;

fn status(world: &World) -> &SwarmStatus {
    let mut events = world.events.iter().rev();
    let found = events.find_map(|event| match event {
        Event::Swarm(SwarmEvent::Status(status)) => Some(status),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_shared_model_arrives_whole_and_is_the_same() {
    for model in [small(), wide()] {
        let mut giver = World::giving(&model);
        let mut taker = World::new();
        let import = taker.ask_peers(&model, false);
        connect(&mut giver, &mut taker, model.id(), 1);
        talk(&mut giver, &mut taker, ALWAYS);
        let (summary, already_here) = imported(taker.last_of(import));
        assert_eq!((summary.id, already_here), (model.id(), false));
        let stored = taker.directory.get(&names::done(model.id().root)).unwrap();
        assert!(stored == model.file);
        assert_eq!(status(&giver).up, model.id().length);
        // Whoever only takes gives nothing, and is not connected any more.
        let ended = SwarmEvent::Ended { model: model.id() };
        assert!(taker.events.contains(&Event::Swarm(ended)));
        let closed = taker.closed();
        assert!(closed.iter().all(|(link, _)| *link == 1) && !closed.is_empty());
    }
}

#[test]
fn nothing_is_given_unasked_and_at_a_word_nothing_more() {
    let model = wide();
    let mut giver = World::with(&model);
    let mut taker = World::new();
    taker.ask_peers(&model, false);
    connect(&mut giver, &mut taker, model.id(), 1);
    talk(&mut giver, &mut taker, ALWAYS);
    assert_eq!(giver.closed(), [(1, "sharing was stopped".into())]);
    assert_eq!(status(&taker).down, 0);

    giver.share(model.id());
    giver.run();
    connect(&mut giver, &mut taker, model.id(), 2);
    talk(&mut giver, &mut taker, 60);
    assert!(status(&taker).down > 0);
    while giver.step() {}
    giver.said.clear();
    let unshare = SwarmCommand::Unshare { model: model.id() };
    giver.command(Command::Swarm(unshare));
    while giver.step() {}
    assert!(giver.said.is_empty(), "something was sent after the word");
    assert_eq!(giver.closed().last().unwrap().0, 2);
}

#[test]
fn a_transfer_goes_on_where_it_was_with_another_peer() {
    let model = wide();
    let mut giver = World::giving(&model);
    let mut taker = World::new();
    taker.ask_peers(&model, false);
    connect(&mut giver, &mut taker, model.id(), 1);
    talk(&mut giver, &mut taker, 250);
    let got = status(&taker).down;
    assert!(got > 0 && got < model.id().length, "{got}");
    // The giver is gone; another one comes.
    taker.command(Command::Swarm(SwarmCommand::Closed { link: 1 }));
    let mut other = World::giving(&model);
    connect(&mut other, &mut taker, model.id(), 2);
    talk(&mut other, &mut taker, ALWAYS);
    let (summary, _) = imported(taker.last_of(protocol::ImportId(1)));
    assert_eq!(summary.id, model.id());
    // Verified leaves were not asked for again: only what was under way.
    let again = status(&other).up + got - model.id().length;
    assert!(again <= 16 * 16_384, "{again} bytes came twice");
}

#[test]
fn what_an_earlier_session_stored_is_not_fetched_again() {
    let model = wide();
    let mut giver = World::giving(&model);
    let mut taker = World::new();
    let import = taker.ask_peers(&model, false);
    connect(&mut giver, &mut taker, model.id(), 1);
    talk(&mut giver, &mut taker, 250);
    let discard = false;
    taker.command(Command::CancelImport { import, discard });
    taker.run();
    let kept = |event: &Event| match event {
        Event::Models(models) => models.first().and_then(|model| model.partial),
        _ => None,
    };
    taker.command(Command::ListModels);
    let kept = taker.events.iter().rev().find_map(kept).unwrap();
    assert!(kept > 0);

    let mut taker = World::on(taker.directory.clone());
    let import = taker.ask_peers(&model, false);
    giver.command(Command::Swarm(SwarmCommand::Closed { link: 1 }));
    let before = status(&giver).up;
    connect(&mut giver, &mut taker, model.id(), 2);
    talk(&mut giver, &mut taker, ALWAYS);
    imported(taker.last_of(import));
    // The header's piece is read from the part file, too.
    assert_eq!(status(&taker).down, model.id().length - kept);
    assert!(status(&giver).up >= before);
}

#[test]
fn a_taker_that_gives_goes_on_giving_when_it_is_whole() {
    let model = wide();
    let mut giver = World::giving(&model);
    let mut second = World::new();
    second.ask_peers(&model, true);
    connect(&mut giver, &mut second, model.id(), 1);
    talk(&mut giver, &mut second, ALWAYS);
    assert!(status(&second).gives && !status(&second).fetches);

    let mut third = World::new();
    let import = third.ask_peers(&model, false);
    connect(&mut second, &mut third, model.id(), 7);
    talk(&mut second, &mut third, ALWAYS);
    imported(third.last_of(import));
    assert_eq!(status(&second).up, model.id().length);
}

#[test]
fn servers_and_peers_help_with_one_download() {
    let model = wide();
    let mut giver = World::giving(&model);
    let mut taker = World::new();
    taker.serve(&model);
    let import = taker.invited(InvitedModel {
        id: model.id(),
        name: "invited".into(),
        sources: vec![model.url.clone(), "gone.slm".into()],
        trackers: Vec::new(),
        gives: false,
        seed: 5,
    });
    connect(&mut giver, &mut taker, model.id(), 1);
    talk(&mut giver, &mut taker, ALWAYS);
    taker.run();
    imported(taker.last_of(import));
    let of_peer = status(&giver).up;
    let of_server: u32 = taker.pieces_asked(&model.url).values().sum();
    assert!(of_peer > 0 && of_server > 0, "{of_peer} {of_server}");
}

#[test]
fn a_server_alone_is_enough() {
    let model = wide();
    let mut taker = World::new();
    taker.serve(&model);
    let import = taker.invited(InvitedModel {
        id: model.id(),
        name: "invited".into(),
        sources: vec![model.url.clone()],
        trackers: Vec::new(),
        gives: false,
        seed: 5,
    });
    taker.run();
    imported(taker.last_of(import));
    let twice = taker.pieces_asked(&model.url);
    assert!(twice.values().all(|times| *times == 1), "{twice:?}");
}

/// The header decides before anything else is fetched or stored.
#[test]
fn a_model_that_does_not_fit_is_refused_before_its_weights_are_fetched() {
    let model = wide();
    let mut giver = World::giving(&model);
    let mut taker = World::new();
    taker.estimate = store::Estimate {
        quota: Some(3 << 20),
        usage: Some(1 << 20),
    };
    let import = taker.ask_peers(&model, false);
    connect(&mut giver, &mut taker, model.id(), 1);
    talk(&mut giver, &mut taker, ALWAYS);
    let error = refused(taker.last_of(import));
    assert_eq!(error.code, protocol::TrResult::Storage, "{error:?}");
    assert!(status(&giver).up <= 1 << 20);
    assert!(!taker.names().contains(&names::part(model.id().root)));
}

/// A person names a tracker and a limit while it is shared.
#[test]
fn how_a_model_is_shared_can_change() {
    let model = small();
    let mut giver = World::giving(&model);
    giver.command(Command::Swarm(SwarmCommand::Share {
        model: model.id(),
        trackers: vec!["wss://t.example".into()],
        limit: Some(1_000),
        seed: 1,
    }));
    assert_eq!(status(&giver).trackers, ["wss://t.example"]);
    assert!(status(&giver).gives);
}

#[test]
fn a_deleted_model_is_not_shared_and_one_that_is_not_here_neither() {
    let model = small();
    let mut giver = World::giving(&model);
    giver.command(Command::DeleteModel { model: model.id() });
    giver.run();
    let ended = SwarmEvent::Ended { model: model.id() };
    assert!(giver.events.contains(&Event::Swarm(ended)));
    giver.share(model.id());
    giver.illegal(Subject::Store);
}
