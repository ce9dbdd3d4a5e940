//! Every command in every state of a session: it is done, or refused with a code, a reason and a
//! remedy. Nothing hangs, nothing is passed over in silence, and afterwards everything works as
//! before.

mod asked;
mod world;

use asked::{IMPORT, REQUEST, answer, commands, is_a_report, measure, wish};
use format::ModelId;
use protocol::{Command, Event, ImportId, ImportSource, RequestId};
use worker::{Input, NativeEngine};
use world::World;
use world::models::{Stored, small, wide};

/// More turns than anything here takes.
const TURNS_MAX: usize = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No engine has started.
    Starting,
    /// The directory is being read.
    Scanning,
    /// Nothing is stored.
    Empty,
    /// A model is stored.
    Stored,
    Loading,
    Loaded,
    Generating,
    /// Another model is being fetched.
    Importing,
    /// That import was stopped and is being put away.
    Stopping,
    Checking,
    Deleting,
    /// The lists of models are on their way.
    Asking,
    /// No engine can be had.
    Failed,
}

/// What a command comes to in each state, in the order of [`commands`]: `a` it is done, `r` it is
/// refused, `n` it is a report, which nobody answers.
const TABLE: [(State, &str); 13] = [
    (State::Starting, "aaaarrrrrrrrrrrrrrraarrrrrnaarrarnn"),
    (State::Scanning, "aaaarrrrararrrrrrrraaarrarnaaararnn"),
    (State::Empty, "aaaarrrrrrrrrrrrrrraarrrrrnaarrarnn"),
    (State::Stored, "aaaarrrrararrrrrrrraaarrarnaaararnn"),
    (State::Loading, "aaaarrrrrrrrrrrrrrraaarrrrnaaararnn"),
    (State::Loaded, "aaaarrrrrrararaaarraaarrrrnaaararnn"),
    (State::Generating, "aaaarrrrrrrrrraararaaarrrrnaaararnn"),
    (State::Importing, "aaarrrarararrrrrrrraaarrarnaaararnn"),
    (State::Stopping, "aaarrrarararrrrrrrraaarrarnaaararnn"),
    (State::Checking, "aaaarrrrararrrrrrrraaarrrrnaaararnn"),
    (State::Deleting, "aaaarrrrarrrrrrrrrraaarrrrnaarrarnn"),
    (State::Asking, "aaaarrrrararrrrrrrraaarrarnaaararnn"),
    (State::Failed, "rrrrrrrrrrrrrrrrrrraarrrrrrrrrrrrrr"),
];

/// A world in that state. The small model is stored where anything is; the wide one is fetched.
fn world_in(state: State, model: &Stored, other: &Stored) -> World {
    let serving = |mut world: World| {
        world.serve(model);
        world.serve(other);
        let list = serde_json::json!({ "schema": protocol::CATALOGUE_SCHEMA, "models": [] });
        let list = list.to_string().into_bytes();
        world.server.insert("catalogue.json".into(), list);
        world
    };
    match state {
        State::Starting => serving(World::not_started(Default::default())),
        State::Scanning => {
            let directory = World::with(model).directory;
            let mut world = serving(World::not_started(directory));
            world.begin_start(NativeEngine::default());
            world
        }
        State::Empty => serving(World::new()),
        State::Failed => {
            let mut world = serving(World::not_started(Default::default()));
            let error = worker::lane::LaneRefusal::NoneLeft.report();
            let downgrades = Vec::new();
            world.give(Input::NotStarted { error, downgrades });
            world
        }
        _ => {
            let directory = World::with(model).directory;
            let mut world = serving(World::on(directory));
            lead(&mut world, state, model.id(), other);
            world
        }
    }
}

/// From a stored model to the state.
fn lead(world: &mut World, state: State, model: ModelId, other: &Stored) {
    match state {
        State::Loading => {
            let context = 0;
            world.command(Command::Load { model, context });
        }
        State::Loaded => world.load(model),
        State::Generating => {
            world.load(model);
            let (request, measure) = (REQUEST, measure());
            world.command(Command::Measure { request, measure });
            world.run_until(|event| matches!(event, Event::Prefill { .. }));
        }
        State::Importing | State::Stopping => {
            let (import, discard) = (world.ask_server(other), true);
            assert_eq!(import, IMPORT);
            world.run_until(|event| matches!(event, Event::Import(p) if p.pieces >= 2));
            if state == State::Stopping {
                world.command(Command::CancelImport { import, discard });
            }
        }
        State::Checking => world.command(Command::Check { model }),
        State::Deleting => world.command(Command::DeleteModel { model }),
        State::Asking => world.command(Command::Catalogue { newest: 0 }),
        _ => {}
    }
}

fn run(world: &mut World, cell: &str) {
    for _ in 0..TURNS_MAX {
        if !world.turn() {
            return;
        }
    }
    panic!("{cell} never comes to an end");
}

/// One cell: the first answer after the command.
fn outcome(world: &mut World, command: &Command, cell: &str) -> char {
    let from = world.events.len();
    world.command(command.clone());
    if world.events.len() == from && !matches!(command, Command::Export { .. }) {
        run(world, cell);
    }
    run(world, cell);
    let answers = world.events[from..].iter();
    let mut answers = answers.filter_map(|event| answer(command, event));
    // The end of a check has the same subject, and comes first.
    let first = match command {
        Command::DeleteModel { model } if model.length > 1 => {
            answers.reduce(|one, other| one || other)
        }
        _ => answers.next(),
    };
    match first {
        Some(true) => 'a',
        Some(false) => 'r',
        None if !world.handed_out.is_empty() => 'a',
        None if is_a_report(command) => 'n',
        None => panic!("{cell}: silence; {:?}", &world.events[from..]),
    }
}

/// Whatever was asked, a model can be brought in, loaded and asked, and gives the same.
fn check_still_works(world: &mut World, model: &Stored, expected: &[u32], cell: &str) {
    let import = ImportId(950);
    let source = ImportSource::Catalogue(model.entry());
    world.command(Command::Import { import, source });
    run(world, cell);
    let context = 0;
    let model = model.id();
    world.command(Command::Load { model, context });
    run(world, cell);
    let (request, measure) = (RequestId(950), measure());
    world.command(Command::Measure { request, measure });
    run(world, cell);
    assert_eq!(world.measured().1, expected, "{cell}");
}

/// A wish has no answer: the next load obeys it, whenever it was said.
fn check_wish(world: &World, command: &Command, cell: &str) {
    let loads = world.events.iter().rev();
    let mut fits = loads.filter_map(|event| match event {
        Event::Loaded { fit, .. } => Some(fit),
        _ => None,
    });
    let fit = fits.next().unwrap_or_else(|| panic!("{cell}: no load"));
    let is_as_wished = (fit.context, fit.residency) == (wish().context, wish().residency);
    let is_wished = matches!(command, Command::Prefer(_));
    assert_eq!(is_as_wished, is_wished, "{cell}: {fit:?}");
}

#[test]
fn every_command_in_every_state_of_a_session() {
    let (model, other) = (small(), wide());
    let mut fresh = World::loaded(&model);
    let (request, measure) = (REQUEST, measure());
    fresh.command(Command::Measure { request, measure });
    fresh.run();
    let expected = fresh.measured().1;
    let mut found = Vec::new();
    for (state, _) in TABLE {
        let mut row = String::new();
        for (name, command) in commands(model.id()) {
            let cell = format!("{name} while {state:?}");
            let mut world = world_in(state, &model, &other);
            if state == State::Starting {
                // What is asked for before the start is answered by it.
                let from = world.events.len();
                world.command(command.clone());
                if command != Command::Diagnostics {
                    assert_eq!(world.events.len(), from, "{cell}");
                }
                world.start(NativeEngine::default());
                run(&mut world, &cell);
                let mut answers = world.events[from..].iter();
                row.push(match answers.find_map(|event| answer(&command, event)) {
                    Some(true) => 'a',
                    Some(false) => 'r',
                    None if is_a_report(&command) => 'n',
                    None => panic!("{cell}: silence"),
                });
            } else {
                row.push(outcome(&mut world, &command, &cell));
            }
            if state != State::Failed {
                check_still_works(&mut world, &model, &expected, &cell);
                check_wish(&world, &command, &cell);
            }
        }
        found.push((state, row));
    }
    let names: Vec<&str> = commands(model.id()).iter().map(|(name, _)| *name).collect();
    let all = found.clone();
    for ((state, expected), (_, found)) in TABLE.iter().zip(&found) {
        assert_eq!(found, expected, "{state:?}: {names:?}\n{all:#?}");
    }
}
