//! A model is used where its file lies: checked as any other, and nothing of it is stored.

mod world;

use format::PIECE_BYTES;
use protocol::{Command, Event, Mode, Subject, TrResult};
use world::models::{small, smollm2, wide};
use world::{World, imported, refused};

#[test]
fn a_file_is_used_where_it_lies() {
    let model = small();
    let mut stored = World::loaded(&model);
    stored.measure(Mode::Int8V1, 0, 5);
    stored.run();

    let mut world = World::new();
    let import = world.lend_file("a.slm", model.file.clone());
    world.run();
    let (summary, _) = imported(world.last_of(import));
    assert!(summary.borrowed && summary.id == model.id(), "{summary:?}");
    assert!(world.names().is_empty(), "{:?}", world.names());
    world.load(model.id());
    // Whoever loads it is told too, so that nobody misses it when the tab is gone.
    let is_lent = |event: &Event| matches!(event, Event::Loaded { model, .. } if model.borrowed);
    assert!(world.events.iter().any(is_lent), "{:?}", world.events);
    world.measure(Mode::Int8V1, 0, 5);
    world.run();
    assert_eq!(world.measured(), stored.measured());
    // It cannot be handed out or checked, for it is not here.
    let id = model.id();
    for command in [Command::Export { model: id }, Command::Check { model: id }] {
        world.command(command);
        world.illegal(Subject::Model(id));
    }
    // Loaded again, and put away: then its handle is let go, and the file is where it was.
    world.command(Command::Unload);
    world.load(model.id());
    world.command(Command::Unload);
    world.command(Command::DeleteModel { model: id });
    world.run();
    assert_eq!(world.events.last(), Some(&Event::Models(Vec::new())));
    assert_eq!(world.files_held(), 0);
}

/// Every piece is hashed again where the engine keeps it, as of a stored one.
#[test]
fn a_file_that_changes_afterwards_is_found_out() {
    let model = wide();
    let mut world = World::new();
    let import = world.lend_file("a.slm", model.file.clone());
    world.run();
    imported(world.last_of(import));
    world.change_file(1, 5 * PIECE_BYTES as usize + 7);
    world.load(model.id());
    let error = world.failure(Subject::Load(model.id()));
    assert_eq!(error.code, TrResult::HashMismatch);
    assert!(error.what.contains("iece 5 "), "{error:?}");
}

#[test]
fn it_can_be_kept_later_and_what_is_kept_already_is_not_lent() {
    let model = small();
    let mut world = World::new();
    world.lend_file("a.slm", model.file.clone());
    world.run();
    let (summary, already_here) = imported(world.import_file("a.slm", model.file.clone()));
    assert!(!summary.borrowed && !already_here, "{summary:?}");
    assert_eq!(world.names().len(), 2);
    world.load(model.id());
    let import = world.lend_file("a.slm", model.file);
    world.run();
    let (summary, already_here) = imported(world.last_of(import));
    assert!(!summary.borrowed && already_here, "{summary:?}");
}

/// A conversion has to put its result somewhere.
#[test]
fn what_has_to_be_converted_cannot_be_used_where_it_lies() {
    let mut world = World::new();
    let import = world.lend_file("a.gguf", smollm2());
    world.run();
    let error = refused(world.last_of(import));
    assert_eq!(error.code, TrResult::UnsupportedFeature);
    assert!(error.remedy.contains("keep"), "{error:?}");
    assert!(world.names().is_empty());
}
