//! Stored files become models, or are refused by name; what a start finds in the directory.

mod world;

use protocol::{Command, Event, Mode, Subject, TrResult};
use store::names;
use world::World;
use world::models::{small, wide};

#[test]
fn tiles_change_no_bit_and_modes_do() {
    let mut world = World::loaded(&small());
    let mut run = |mode, tile| {
        world.measure(mode, tile, 6);
        world.run();
        world.measured()
    };
    let int8 = run(Mode::Int8V1, 0);
    assert_eq!(run(Mode::Int8V1, 5), int8);
    let strict = run(Mode::StrictF32V1, 0);
    assert_ne!(strict.0, int8.0);
    assert_eq!(run(Mode::StrictF32V1, 1), strict);
    assert_eq!(run(Mode::Int8V1, 0), int8);
    assert_eq!(int8.1.len(), 6);
}

#[test]
fn a_damaged_piece_is_named_and_the_model_is_not_used() {
    let model = wide();
    let mut world = World::with(&model);
    let name = names::done(model.id().root);
    for piece in [0_usize, 5, 12] {
        let mut file = model.file.clone();
        let at = match piece {
            // The header's own piece, behind the header.
            0 => 700_000,
            piece => piece * format::PIECE_BYTES as usize + 3,
        };
        file[at] ^= 4;
        world.directory.put(&name, file);
        world.load(model.id());
        let error = world.failure(Subject::Load(model.id()));
        assert_eq!(error.code, TrResult::HashMismatch);
        let words = format!("iece {piece} ");
        assert!(error.what.contains(&words), "{error:?}");
        let request = world.measure(Mode::Int8V1, 0, 1);
        world.illegal(Subject::Request(request));
    }
    // The file is closed again, so it can be replaced.
    world.directory.put(&name, model.file.clone());
    world.load(model.id());
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
}

#[test]
fn a_damaged_model_can_be_imported_again() {
    let model = wide();
    let mut world = World::with(&model);
    let name = names::done(model.id().root);
    let mut file = model.file.clone();
    file[9_000_000] ^= 1;
    world.directory.put(&name, file);
    world.load(model.id());
    world.failure(Subject::Load(model.id()));
    let event = world.import_file("again.slm", model.file.clone());
    assert!(
        matches!(
            event,
            Event::Imported {
                already_here: false,
                ..
            }
        ),
        "{event:?}"
    );
    world.load(model.id());
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
}

#[test]
fn a_lost_or_damaged_piece_layer_is_made_again() {
    let model = wide();
    let mut world = World::with(&model);
    let name = names::pieces(model.id().root);
    world.directory.put(&name, vec![0; 32 * 13]);
    world.load(model.id());
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
    assert_eq!(world.directory.get(&name), Some(model.layer.to_bytes()));
    world.command(Command::Unload);
    store::Catalog::remove(&world.directory, &name).expect("it is closed");
    let mut world = World::on(world.directory.clone());
    world.load(model.id());
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
    assert_eq!(world.directory.get(&name), Some(model.layer.to_bytes()));
}

#[test]
fn a_context_that_the_model_does_not_have() {
    let model = small();
    let mut world = World::with(&model);
    let (id, context) = (model.id(), 5_000);
    world.command(Command::Load { model: id, context });
    world.run();
    let error = world.failure(Subject::Load(id));
    assert_eq!(error.code, TrResult::ContextExceeded);
    world.load(id);
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
}

#[test]
fn a_start_removes_what_nothing_needs() {
    let world = World::with(&small());
    let before = world.names();
    world.directory.put("incoming-3.part", vec![1; 100]);
    let root = wide().id().root;
    world.directory.put(&names::have(root), vec![1; 100]);
    world.directory.put("readme.txt", vec![1; 100]);
    let mut world = World::on(world.directory.clone());
    let mut expected = before;
    expected.insert("readme.txt".into());
    assert_eq!(world.names(), expected);
    world.command(Command::ListModels);
    match world.events.last() {
        Some(Event::Models(models)) => assert_eq!(models.len(), 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_unreadable_model_hides_no_other() {
    let world = World::with(&small());
    let root = wide().id().root;
    world.directory.put(&names::done(root), vec![7; 5_000]);
    world
        .directory
        .put(&names::part(format::Root::default()), vec![0; 5_000]);
    let mut world = World::on(world.directory.clone());
    world.command(Command::ListModels);
    let models = match world.events.last() {
        Some(Event::Models(models)) => models.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(models.len(), 3, "{models:?}");
    let broken = models.iter().find(|model| model.id.root == root);
    let broken = broken.expect("it is listed").id;
    world.load(broken);
    world.failure(Subject::Load(broken));
    world.command(Command::DeleteModel { model: broken });
    world.run();
    assert!(!world.names().contains(&names::done(root)));
}
