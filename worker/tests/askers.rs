//! Who asks for the same gets it from one fetch, and what fails is told to who asked for it.

mod world;

use protocol::{
    ClientId, Command, Event, ImportId, ImportSource, ModelSummary, NamedFile, RequestId, Subject,
};
use worker::tabs::{Hub, HubOutput};
use world::models::{small, wide};
use world::{World, imported};

const URL: &str = "https://elsewhere/models/a.slm";

#[test]
fn two_who_name_the_same_address_share_one_fetch() {
    let model = wide();
    let mut world = World::new();
    world.server.insert(URL.into(), model.file.clone());
    let first = world.ask_address(URL);
    world.run_until(|event| matches!(event, Event::Import(p) if p.pieces >= 4));
    let second = world.ask_address(URL);
    world.run();
    for import in [first, second] {
        let (summary, already_here) = imported(world.last_of(import));
        assert_eq!((summary.id, already_here), (model.id(), false));
        let tells = |event: &&Event| matches!(event, Event::Import(p) if p.import == import);
        assert!(world.events.iter().filter(tells).count() > 3, "{import:?}");
    }
    world.asked_once(URL, model.file.len());
}

/// Whoever leaves takes nothing away from the others; the last one ends it.
#[test]
fn a_shared_fetch_ends_with_the_last_who_wants_it() {
    let model = wide();
    for leaves in [0, 1] {
        let mut world = World::new();
        world.serve(&model);
        let both = [world.ask_server(&model), world.ask_server(&model)];
        world.run_until(|event| matches!(event, Event::Import(p) if p.pieces >= 4));
        let (left, stays) = (both[leaves], both[1 - leaves]);
        let discard = true;
        let import = left;
        world.command(Command::CancelImport { import, discard });
        assert_eq!(world.last_of(left), Event::ImportCancelled { import });
        world.run();
        imported(world.last_of(stays));
        world.asked_once(&model.url, model.file.len());
    }
    let mut world = World::new();
    world.serve(&model);
    let both = [world.ask_server(&model), world.ask_server(&model)];
    world.run_until(|event| matches!(event, Event::Import(p) if p.pieces >= 4));
    for import in both {
        let discard = true;
        world.command(Command::CancelImport { import, discard });
    }
    world.run();
    for import in both {
        assert_eq!(world.last_of(import), Event::ImportCancelled { import });
    }
    assert!(world.names().is_empty());
}

const ME: ClientId = ClientId(1);
const OTHER: ClientId = ClientId(2);

fn outputs(hub: &mut Hub) -> Vec<HubOutput> {
    std::iter::from_fn(|| hub.poll()).collect()
}

fn failed(subject: Subject) -> Event {
    let mut world = World::new();
    world.command(Command::Unload);
    match world.events.last() {
        Some(Event::Failed { error, .. }) => Event::Failed {
            subject,
            error: error.clone(),
        },
        other => panic!("{other:?}"),
    }
}

fn hub() -> Hub {
    let mut hub = Hub::new(ME);
    assert!(hub.join(OTHER));
    outputs(&mut hub);
    hub
}

#[test]
fn what_cannot_be_done_is_told_only_to_who_asked_for_it() {
    let model = small().id();
    for asker in [ME, OTHER] {
        for command in [
            Command::DeleteModel { model },
            Command::Export { model },
            Command::Check { model },
            Command::Unload,
        ] {
            let mut hub = hub();
            hub.command(asker, command.clone(), None);
            outputs(&mut hub);
            hub.event(failed(command.subject()));
            let told = outputs(&mut hub);
            let expected = HubOutput::Client(asker, failed(command.subject()));
            assert_eq!(told, [expected], "{command:?}");
        }
    }
    // A deletion that went well is no longer waited for: who asks next is the one to be told.
    let mut hub = hub();
    hub.command(ME, Command::DeleteModel { model }, None);
    hub.event(Event::Models(Vec::<ModelSummary>::new()));
    hub.command(OTHER, Command::DeleteModel { model }, None);
    outputs(&mut hub);
    hub.event(failed(Subject::Model(model)));
    let told = outputs(&mut hub);
    assert!(
        matches!(told[..], [HubOutput::Client(OTHER, _)]),
        "{told:?}"
    );
}

/// A list that comes in between answers nobody who asked for a model that is not in it.
#[test]
fn what_never_was_is_answered_after_a_list_too() {
    let model = small().id();
    for command in [
        Command::DeleteModel { model },
        Command::Export { model },
        Command::Check { model },
    ] {
        let mut hub = hub();
        hub.command(OTHER, command.clone(), None);
        hub.event(Event::Models(Vec::<ModelSummary>::new()));
        outputs(&mut hub);
        hub.event(failed(Subject::Model(model)));
        let expected = HubOutput::Client(OTHER, failed(Subject::Model(model)));
        assert_eq!(outputs(&mut hub), [expected], "{command:?}");
    }
}

/// The owner holds another tab's file as long as it is read, and no longer.
#[test]
fn a_file_of_another_tab_is_let_go_when_its_import_ends() {
    let file = |import| Command::Import {
        import: ImportId(import),
        source: ImportSource::Files {
            name: "folder".into(),
            files: vec![NamedFile {
                name: "a.gguf".into(),
                length: 5,
            }],
        },
    };
    let mut hub = hub();
    hub.command(OTHER, file(1), Some(9));
    let ours = match outputs(&mut hub).as_slice() {
        [HubOutput::Session(Command::Import { import, .. }, Some(9))] => *import,
        other => panic!("{other:?}"),
    };
    // The same number once more is refused, and its file is not kept.
    hub.command(OTHER, file(1), Some(10));
    let told = outputs(&mut hub);
    assert!(told.contains(&HubOutput::LetGo(10)), "{told:?}");
    hub.event(Event::ImportCancelled { import: ours });
    let told = outputs(&mut hub);
    assert!(told.contains(&HubOutput::LetGo(9)), "{told:?}");
    // What reads no file keeps none.
    let request = RequestId(1);
    hub.command(OTHER, Command::Stop { request }, Some(11));
    assert!(outputs(&mut hub).contains(&HubOutput::LetGo(11)));
}
