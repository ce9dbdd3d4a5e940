//! A model is deleted and brought in at the same time, in every order of steps.

mod world;

use protocol::{Command, Event, ImportId, Subject, TrResult};
use world::models::{Stored, small};
use world::{World, imported};

const URL: &str = "https://elsewhere/models/a.slm";
/// More than a deletion or an import of the small model has.
const TURNS_MAX: usize = 60;

/// The ways in which the same model can come.
const WAYS: [fn(&mut World, &Stored) -> ImportId; 3] = [
    |world, model| world.drop_file("a.slm", model.file.clone()),
    |world, _| world.ask_address(URL),
    |world, model| world.ask_server(model),
];

fn world_with(model: &Stored) -> World {
    let mut world = World::with(model);
    world.serve(model);
    world.server.insert(URL.into(), model.file.clone());
    world
}

fn delete(world: &mut World, model: &Stored) {
    world.command(Command::DeleteModel { model: model.id() });
}

/// Turns until that many are done or nothing is left to do, which is told.
fn turn(world: &mut World, turns: usize) -> bool {
    (0..turns).all(|_| world.turn())
}

/// What the session lists is what the storage holds, whole or not at all.
fn check(mut world: World, model: &Stored, cell: &str) -> bool {
    let from = world.events.len();
    world.command(Command::ListModels);
    let Some(Event::Models(listed)) = world.events[from..].first().cloned() else {
        panic!("{cell}: no list");
    };
    let mut next = World::on(world.directory);
    next.run();
    next.command(Command::ListModels);
    assert_eq!(
        next.events.last(),
        Some(&Event::Models(listed.clone())),
        "{cell}"
    );
    if listed.is_empty() {
        assert!(next.names().is_empty(), "{cell}: {:?}", next.names());
        return false;
    }
    assert_eq!((listed.len(), listed[0].partial), (1, None), "{cell}");
    next.load(model.id());
    let last = next.events.last();
    assert!(
        matches!(last, Some(Event::Loaded { .. })),
        "{cell}: {last:?}"
    );
    true
}

#[test]
fn a_model_that_comes_while_it_is_deleted_waits_and_stays() {
    let model = small();
    for (way, bring) in WAYS.iter().enumerate() {
        for turns in 0..TURNS_MAX {
            let cell = format!("way {way}, {turns} turns");
            let mut world = world_with(&model);
            delete(&mut world, &model);
            let goes_on = turn(&mut world, turns);
            let import = bring(&mut world, &model);
            world.run();
            let (_, was_here) = imported(world.last_of(import));
            assert!(!was_here, "{cell}");
            assert!(check(world, &model, &cell), "{cell}");
            if !goes_on {
                break;
            }
            assert!(turns + 1 < TURNS_MAX, "{cell}: the deletion never ends");
        }
    }
}

#[test]
fn a_model_that_is_deleted_while_it_comes_is_whole_or_gone() {
    let model = small();
    for (way, bring) in WAYS.iter().enumerate() {
        let mut ends = [0; 2];
        for turns in 0..TURNS_MAX {
            let cell = format!("way {way}, {turns} turns");
            let mut world = world_with(&model);
            let import = bring(&mut world, &model);
            let goes_on = turn(&mut world, turns);
            delete(&mut world, &model);
            world.run();
            let of_import = |event: &&Event| {
                matches!(event, Event::Failed { subject, error }
                    if *subject == Subject::Import(import)
                    && error.code != TrResult::IllegalState)
            };
            assert_eq!(world.events.iter().find(of_import), None, "{cell}");
            ends[usize::from(check(world, &model, &cell))] += 1;
            if !goes_on {
                break;
            }
            assert!(turns + 1 < TURNS_MAX, "{cell}: the import never ends");
        }
        assert!(ends[0] > 0, "way {way}: never gone, {ends:?}");
    }
}
