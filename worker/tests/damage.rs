//! Stored bytes that changed, and disks that are full: what is shown, and what can be done.

mod world;

use protocol::{Command, Event, Mode, ModelSummary, Subject, TrResult};
use store::{Estimate, names};
use world::World;
use world::models::{small, smollm2, wide};

const PIECE: usize = format::PIECE_BYTES as usize;

fn listed(world: &mut World) -> Vec<ModelSummary> {
    world.command(Command::ListModels);
    match world.events.last() {
        Some(Event::Models(models)) => models.clone(),
        other => panic!("{other:?}"),
    }
}

/// Two models; one bit of the second one's file flips.
fn flipped(at: usize) -> World {
    let world = World::with(&small());
    let model = wide();
    let mut world = World::on(world.directory.clone());
    world.serve(&model);
    world.ask_server(&model);
    world.run();
    let name = names::done(model.id().root);
    let mut file = world.directory.get(&name).expect("it is stored");
    file[at] ^= 0x20;
    world.directory.put(&name, file);
    world.asked.clear();
    world
}

#[test]
fn one_flipped_bit_is_found_by_loading_and_shown_in_the_list() {
    let model = wide();
    let mut world = flipped(5 * PIECE + 77);
    world.load(model.id());
    let error = world.failure(Subject::Load(model.id())).clone();
    assert_eq!(error.code, TrResult::HashMismatch);
    assert!(error.what.contains("iece 5 "), "{error:?}");
    // The page hears it without asking.
    let told = world.events.iter().rev().find_map(|event| match event {
        Event::Models(models) => Some(models.clone()),
        _ => None,
    });
    let damaged: Vec<bool> = told.unwrap_or_default().iter().map(|m| m.damaged).collect();
    assert_eq!(damaged.iter().filter(|damaged| **damaged).count(), 1);
    // The other model is as good as before.
    world.load(small().id());
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
}

/// On a person's word, while another model is loaded and answers.
#[test]
fn a_stored_model_is_checked_without_being_loaded() {
    let model = wide().id();
    let checked = |world: &World| {
        let mut events = world.events.iter().rev();
        events.find_map(|event| match event {
            Event::Checked {
                model: of,
                is_sound,
            } if *of == model => Some(*is_sound),
            _ => None,
        })
    };
    let mut world = flipped(5 * PIECE + 77);
    world.load(small().id());
    world.command(Command::Check { model });
    let request = world.measure(Mode::Int8V1, 0, 3);
    world.run();
    assert_eq!(checked(&world), Some(false));
    let answered =
        |event: &Event| matches!(event, Event::Measured { request: of, .. } if *of == request);
    assert!(world.events.iter().any(answered));
    let told = world.events.iter().filter_map(|event| match event {
        Event::Checking { done, .. } => Some(*done),
        _ => None,
    });
    assert!(told.clone().count() > 5 && told.is_sorted());
    let damaged = listed(&mut world);
    let damaged = damaged.iter().find(|listed| listed.id == model);
    assert!(damaged.is_some_and(|listed| listed.damaged));
    // Mended, it is found sound, and it can be loaded in the middle of a check.
    world.ask_server(&wide());
    world.run();
    world.command(Command::Check { model });
    world.run();
    assert_eq!(checked(&world), Some(true));
    world.command(Command::Check { model });
    world.turn();
    world.load(model);
    world.illegal(Subject::Model(model));
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
}

#[test]
fn a_repair_fetches_only_what_is_damaged() {
    let model = wide();
    let mut world = flipped(5 * PIECE + 77);
    world.load(model.id());
    let import = world.ask_server(&model);
    world.run();
    let (mended, already_here) = world::imported(world.last_of(import));
    assert!(!already_here && !mended.damaged);
    // The first piece tells what the model is; the fifth was damaged.
    let pieces: Vec<u64> = world.pieces_asked(&model.url).into_keys().collect();
    assert_eq!(pieces, [0, 5], "{:?}", world.asked);
    let stored = world.directory.get(&names::done(model.id().root));
    assert!(stored == Some(model.file.clone()));
    assert!(!listed(&mut world).iter().any(|model| model.damaged));
    world.load(model.id());
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
}

/// Whoever stops a repair keeps the sound pieces.
#[test]
fn a_repair_that_is_stopped_is_an_unfinished_import() {
    let model = wide();
    let mut world = flipped(12 * PIECE + 1);
    world.load(model.id());
    let import = world.ask_server(&model);
    world.run_until(|event| matches!(event, Event::Import(progress) if progress.pieces > 8));
    let discard = false;
    world.command(Command::CancelImport { import, discard });
    world.run();
    let partial = listed(&mut world).into_iter().find(|m| m.id == model.id());
    let here = partial.expect("it is listed").partial;
    assert!(here > Some(8 * PIECE as u64), "{here:?}");
    world.asked.clear();
    world.ask_server(&model);
    world.run();
    assert!(
        world.pieces_asked(&model.url).len() <= 5,
        "{:?}",
        world.asked
    );
    assert_eq!(
        world.directory.get(&names::done(model.id().root)),
        Some(model.file)
    );
}

/// A file that is no model at all, and one that lost its end.
#[test]
fn what_cannot_be_read_is_shown_as_damaged() {
    let world = World::with(&small());
    let root = wide().id().root;
    for file in [vec![7; 5_000], Vec::new()] {
        world.directory.put(&names::done(root), file);
        let mut world = World::on(world.directory.clone());
        let models = listed(&mut world);
        let broken = models.iter().find(|model| model.id.root == root);
        assert!(broken.is_some_and(|model| model.damaged), "{models:?}");
        let sound = models.iter().find(|model| model.id == small().id());
        assert!(sound.is_some_and(|model| !model.damaged), "{models:?}");
    }
}

/// A conversion's output is as large as its header says, and that is known before it is written.
#[test]
fn a_conversion_that_does_not_fit_is_refused_before_its_first_byte_is_stored() {
    let mut world = World::new();
    world.estimate = Estimate {
        usage: Some(90_000_000),
        quota: Some(100_000_000),
    };
    let event = world.import_file("SmolLM2.gguf", smollm2());
    let error = world::refused(event);
    assert_eq!(error.code, TrResult::Storage);
    for figure in ["98.", "10.0 MB", "90.0 MB"] {
        assert!(error.what.contains(figure), "{error:?}");
    }
    assert!(world.names().is_empty(), "{:?}", world.names());
}
