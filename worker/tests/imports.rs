//! How models arrive.

mod world;

use format::PIECE_BYTES;
use protocol::{ChatAbility, Command, Event, ImportId, ImportPhase};
use store::names;
use world::models::{Stored, small, wide};
use world::{World, imported};

fn complete_names(model: &Stored) -> Vec<String> {
    let root = model.id().root;
    let mut names = vec![names::done(root), names::pieces(root)];
    names.sort();
    names
}

fn progress(world: &World, phase: ImportPhase) -> Vec<u64> {
    let of_phase = |event: &Event| match event {
        Event::Import(progress) if progress.phase == phase => Some(progress.bytes),
        _ => None,
    };
    world.events.iter().filter_map(of_phase).collect()
}

#[test]
fn a_model_of_the_catalogue() {
    let model = wide();
    let mut world = World::new();
    world.serve(&model);
    let import = world.ask_server(&model);
    world.run();
    let (summary, already_here) = imported(world.last_of(import));
    assert!(!already_here);
    assert_eq!(summary.id, model.id());
    assert_eq!((summary.name.as_str(), summary.partial), ("wide", None));
    assert_eq!(summary.chat, ChatAbility::NoTokenizer);
    assert!(world.names().iter().eq(&complete_names(&model)));
    let stored = world.directory.get(&names::done(model.id().root));
    assert_eq!(stored.as_ref(), Some(&model.file));
    // Each piece was asked for once, the header's included.
    let asked = world.pieces_asked(&model.url);
    assert_eq!(asked.len() as u32, model.id().pieces());
    assert!(asked.values().all(|times| *times == 1), "{asked:?}");
    let told = progress(&world, ImportPhase::Receiving);
    assert_eq!(told.first(), Some(&0));
    assert_eq!(told.last(), Some(&model.id().length));
    assert!(told.is_sorted());
}

#[test]
fn a_model_that_is_here_is_not_fetched_again() {
    let model = small();
    let mut world = World::new();
    imported(world.import_file("small.slm", model.file.clone()));
    let before = world.names();
    let import = world.ask_server(&model);
    world.run();
    assert!(imported(world.last_of(import)).1);
    assert!(world.asked.is_empty());
    assert!(imported(world.import_file("again.slm", model.file.clone())).1);
    assert_eq!(world.names(), before);
}

/// The worker dies at 40 %: the next one goes on with the first missing piece.
#[test]
fn an_interrupted_import_goes_on_where_it_was() {
    let model = wide();
    let mut world = World::new();
    world.serve(&model);
    world.ask_server(&model);
    let wanted = model.id().length * 2 / 5;
    world.run_until(|event| matches!(event, Event::Import(p) if p.bytes >= wanted));
    // A reload: no message, no closing, only the files stay. Records are written every 16 MiB or
    // two seconds, so time passes before the end.
    let import = ImportId(1);
    let discard = false;
    world.command(Command::CancelImport { import, discard });
    world.run();
    let asked_first = world.pieces_asked(&model.url);
    let kept = world.directory.clone();
    drop(world);

    let mut world = World::on(kept);
    world.serve(&model);
    world.command(Command::ListModels);
    let listed = match world.events.last() {
        Some(Event::Models(models)) => models.clone(),
        other => panic!("no list: {other:?}"),
    };
    let partial = listed[0].partial.expect("an unfinished model");
    assert!(partial >= wanted, "{partial}");
    assert_eq!(listed[0].name, "wide");
    let import = world.ask_server(&model);
    world.run();
    imported(world.last_of(import));
    let told = progress(&world, ImportPhase::Receiving);
    assert_eq!(told.first(), Some(&partial));
    let asked_then = world.pieces_asked(&model.url);
    let twice = asked_then.keys().filter(|piece| {
        let at = **piece * u64::from(PIECE_BYTES);
        asked_first.contains_key(piece) && at < partial
    });
    assert_eq!(twice.count(), 0, "{asked_first:?} then {asked_then:?}");
    let stored = world.directory.get(&names::done(model.id().root));
    assert_eq!(stored, Some(model.file));
}

/// Killed between two records: what the newest record names is kept, the rest is fetched again.
#[test]
fn a_killed_worker_loses_only_what_was_not_recorded() {
    let model = wide();
    let mut world = World::new();
    world.serve(&model);
    world.ask_server(&model);
    world.run_until(|event| matches!(event, Event::Import(p) if p.pieces >= 5));
    // Two seconds later the next piece makes a record.
    world.now_ms += 2_000;
    world.run_until(|event| matches!(event, Event::Import(p) if p.pieces >= 8));
    let kept = world.directory.clone();
    // The worker is gone, and with it every handle.
    drop(world);
    let mut world = World::on(kept);
    world.serve(&model);
    let import = world.ask_server(&model);
    world.run();
    imported(world.last_of(import));
    let told = progress(&world, ImportPhase::Receiving);
    assert!(told[0] > 0, "something was recorded");
    let asked = world.pieces_asked(&model.url);
    assert!(asked.len() < model.id().pieces() as usize, "{asked:?}");
    assert!(asked.values().all(|times| *times == 1), "{asked:?}");
}

#[test]
fn a_cancelled_import_can_be_discarded() {
    let model = wide();
    let mut world = World::new();
    world.serve(&model);
    let import = world.ask_server(&model);
    world.run_until(|event| matches!(event, Event::Import(p) if p.pieces >= 3));
    let asked = world.asked.len();
    let discard = true;
    world.command(Command::CancelImport { import, discard });
    world.run();
    assert_eq!(world.last_of(import), Event::ImportCancelled { import });
    assert!(world.names().is_empty(), "{:?}", world.names());
    // What was under way may still be answered, but nothing new is asked for.
    assert!(world.asked.len() <= asked + store::FLIGHTS_MAX);
    world.command(Command::ListModels);
    assert_eq!(world.events.last(), Some(&Event::Models(Vec::new())));
}

/// In every state, after every single turn: cancel and discard, and nothing is left.
#[test]
fn a_cancel_at_any_moment_leaves_nothing() {
    let model = wide();
    for turns in 0.. {
        let mut world = World::new();
        world.serve(&model);
        let import = world.ask_server(&model);
        for _ in 0..turns {
            world.turn();
        }
        let ended = |event: &Event| matches!(event, Event::Imported { .. });
        if world.events.iter().any(ended) {
            assert!(turns > 10, "the import has more turns than {turns}");
            return;
        }
        let discard = true;
        world.command(Command::CancelImport { import, discard });
        world.run();
        match world.last_of(import) {
            Event::ImportCancelled { .. } => {
                assert!(world.names().is_empty(), "{turns}: {:?}", world.names());
            }
            // The last names were being given: too late to stop.
            Event::Imported { .. } => assert!(world.names().iter().eq(&complete_names(&model))),
            other => panic!("{turns}: {other:?}"),
        }
    }
}

#[test]
fn a_dropped_slm_file_is_read_once_to_know_it_and_once_to_keep_it() {
    let model = wide();
    let mut world = World::new();
    let event = world.import_file("any name.bin", model.file.clone());
    assert_eq!(imported(event).0.id, model.id());
    assert!(world.names().iter().eq(&complete_names(&model)));
    let checked = progress(&world, ImportPhase::Checking);
    assert_eq!(checked.last(), Some(&model.id().length));
    let received = progress(&world, ImportPhase::Receiving);
    assert_eq!(received.last(), Some(&model.id().length));
}

#[test]
fn a_lost_record_costs_no_transfer() {
    let model = wide();
    let mut world = World::new();
    world.serve(&model);
    let import = world.ask_server(&model);
    world.run_until(|event| matches!(event, Event::Import(p) if p.pieces >= 6));
    let discard = false;
    world.command(Command::CancelImport { import, discard });
    world.run();
    let kept = world.directory.clone();
    let root = model.id().root;
    store::Catalog::remove(&kept, &names::have(root)).expect("it is closed");
    let mut world = World::on(kept);
    world.serve(&model);
    let import = world.ask_server(&model);
    world.run();
    imported(world.last_of(import));
    let asked = world.pieces_asked(&model.url);
    assert!(asked.len() <= 8, "{asked:?}");
}

#[test]
fn imports_wait_for_each_other() {
    let (one, two) = (wide(), small());
    let mut world = World::new();
    world.serve(&one);
    let first = world.ask_server(&one);
    let second = world.drop_file("small.slm", two.file.clone());
    let third = world.drop_file("third.slm", two.file);
    let discard = false;
    world.command(Command::CancelImport {
        import: third,
        discard,
    });
    world.run();
    imported(world.last_of(first));
    imported(world.last_of(second));
    assert_eq!(
        world.last_of(third),
        Event::ImportCancelled { import: third }
    );
    world.command(Command::DeleteModel { model: one.id() });
    world.run();
    match world.events.last() {
        Some(Event::Models(models)) => assert_eq!(models.len(), 1),
        other => panic!("{other:?}"),
    }
    assert_eq!(world.names().len(), 2);
}
