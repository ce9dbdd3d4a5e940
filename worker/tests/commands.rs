//! Loading, measuring and refusing, with small models that have no tokenizer.

mod world;

use format::ModelId;
use protocol::{
    Command, ErrorReport, Event, Finish, ImportId, Measure, Message, Mode, RequestId, Sampling,
    Stage, Subject, TrResult,
};
use store::names;
use worker::session::{COMMANDS_MAX, RECORDS_MAX, REQUESTS_MAX};
use worker::{Input, NativeEngine};
use world::World;
use world::models::{Stored, small, wide};

fn with(model: &Stored) -> World {
    let mut world = World::new();
    world.import_file("a.slm", model.file.clone());
    world
}

fn load(world: &mut World, model: ModelId) {
    let context = 0;
    world.command(Command::Load { model, context });
    world.run();
}

fn loaded(model: &Stored) -> World {
    let mut world = with(model);
    load(&mut world, model.id());
    let last = world.events.last();
    assert!(matches!(last, Some(Event::Loaded { .. })), "{last:?}");
    world
}

fn measure(world: &mut World, mode: Mode, prefill_tile: u32, max_new: u32) -> RequestId {
    let request = world.next_request();
    let measure = Measure {
        prompt_ids: (3..33).collect(),
        max_new,
        prefill_tile,
        mode,
    };
    world.command(Command::Measure { request, measure });
    request
}

fn measured(world: &World) -> (format::Digest, Vec<u32>) {
    match world.events.last() {
        Some(Event::Measured {
            logits_sha256, ids, ..
        }) => (*logits_sha256, ids.clone()),
        other => panic!("{other:?}"),
    }
}

fn illegal(world: &World, subject: Subject) -> &ErrorReport {
    let error = world.failure(subject);
    assert_eq!(error.code, TrResult::IllegalState, "{error:?}");
    error
}

#[test]
fn tiles_change_no_bit_and_modes_do() {
    let mut world = loaded(&small());
    let mut run = |mode, tile| {
        measure(&mut world, mode, tile, 6);
        world.run();
        measured(&world)
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
    let mut world = with(&model);
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
        load(&mut world, model.id());
        let error = world.failure(Subject::Load(model.id()));
        assert_eq!(error.code, TrResult::HashMismatch);
        let words = format!("iece {piece} ");
        assert!(error.what.contains(&words), "{error:?}");
        let request = measure(&mut world, Mode::Int8V1, 0, 1);
        illegal(&world, Subject::Request(request));
    }
    // The file is closed again, so it can be replaced.
    world.directory.put(&name, model.file.clone());
    load(&mut world, model.id());
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
}

#[test]
fn a_damaged_model_can_be_imported_again() {
    let model = wide();
    let mut world = with(&model);
    let name = names::done(model.id().root);
    let mut file = model.file.clone();
    file[9_000_000] ^= 1;
    world.directory.put(&name, file);
    load(&mut world, model.id());
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
    load(&mut world, model.id());
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
}

#[test]
fn a_lost_or_damaged_piece_layer_is_made_again() {
    let model = wide();
    let mut world = with(&model);
    let name = names::pieces(model.id().root);
    world.directory.put(&name, vec![0; 32 * 13]);
    load(&mut world, model.id());
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
    assert_eq!(world.directory.get(&name), Some(model.layer.to_bytes()));
    world.command(Command::Unload);
    store::Catalog::remove(&world.directory, &name).expect("it is closed");
    let mut world = World::on(world.directory.clone());
    load(&mut world, model.id());
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
    assert_eq!(world.directory.get(&name), Some(model.layer.to_bytes()));
}

#[test]
fn what_is_not_legal_now_is_refused() {
    let model = small();
    let id = model.id();
    let mut world = with(&model);
    let nowhere = ModelId { length: 1, ..id };

    // Without a model in the engine.
    let request = measure(&mut world, Mode::Int8V1, 0, 1);
    illegal(&world, Subject::Request(request));
    let request = world.next_request();
    world.command(Command::Chat {
        request,
        messages: vec![],
        sampling: Sampling::GREEDY,
    });
    illegal(&world, Subject::Request(request));
    world.command(Command::Stop { request });
    illegal(&world, Subject::Request(request));
    world.command(Command::Unload);
    illegal(&world, Subject::Start);
    let import = ImportId(77);
    world.command(Command::CancelImport {
        import,
        discard: true,
    });
    illegal(&world, Subject::Import(import));
    load(&mut world, nowhere);
    illegal(&world, Subject::Load(nowhere));

    // While one is being loaded.
    let context = 0;
    world.command(Command::Load { model: id, context });
    world.command(Command::Load { model: id, context });
    illegal(&world, Subject::Load(id));
    world.command(Command::DeleteModel { model: id });
    illegal(&world, Subject::Store);
    let request = measure(&mut world, Mode::Int8V1, 0, 1);
    illegal(&world, Subject::Request(request));
    world.run();
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));

    // While a request runs.
    let request = measure(&mut world, Mode::Int8V1, 0, 40);
    world.run_until(|event| matches!(event, Event::Prefill { .. }));
    world.command(Command::Unload);
    illegal(&world, Subject::Start);
    world.command(Command::DeleteModel { model: id });
    illegal(&world, Subject::Store);
    load_now(&mut world, id);
    illegal(&world, Subject::Load(id));
    world.run();
    assert!(
        matches!(world.events.last(), Some(Event::Measured { request: r, .. }) if *r == request)
    );

    // Without a tokenizer nobody can talk.
    let request = world.next_request();
    world.command(Command::Chat {
        request,
        messages: vec![Message {
            role: protocol::Role::User,
            content: "Hello".into(),
        }],
        sampling: Sampling::GREEDY,
    });
    let error = world.failure(Subject::Request(request));
    assert_eq!(error.code, TrResult::UnsupportedFeature);
    world.command(Command::Unload);
    world.command(Command::DeleteModel { model: id });
    world.run();
    assert_eq!(world.events.last(), Some(&Event::Models(Vec::new())));
    assert!(world.names().is_empty());
}

fn load_now(world: &mut World, model: ModelId) {
    let context = 0;
    world.command(Command::Load { model, context });
}

#[test]
fn requests_wait_in_order_and_can_be_stopped_before_they_begin() {
    let mut world = loaded(&small());
    let requests: Vec<RequestId> = (0..REQUESTS_MAX)
        .map(|_| measure(&mut world, Mode::Int8V1, 0, 3))
        .collect();
    let one_more = measure(&mut world, Mode::Int8V1, 0, 3);
    illegal(&world, Subject::Request(one_more));
    world.command(Command::Stop {
        request: requests[2],
    });
    world.run();
    let ended: Vec<RequestId> = world
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Measured { request, .. } => Some(*request),
            Event::Done {
                request,
                finish: Finish::Cancelled,
                ..
            } => Some(*request),
            _ => None,
        })
        .collect();
    let expected = [requests[2], requests[0], requests[1], requests[3]];
    assert_eq!(ended, expected);
}

#[test]
fn a_stop_is_seen_within_one_step() {
    let mut world = loaded(&small());
    // In the prompt, in the answer, and while the engine is opened anew for the request.
    for (tile, turns) in [(1, 5), (1, 70), (9, 1)] {
        let request = measure(&mut world, Mode::Int8V1, tile, 60);
        for _ in 0..turns {
            assert!(world.turn());
        }
        let before = world.events.len();
        world.command(Command::Stop { request });
        let stopped = &world.events[before..];
        assert!(
            matches!(
                stopped,
                [Event::Done { request: r, finish: Finish::Cancelled, .. }] if *r == request
            ),
            "{tile} {turns}: {stopped:?}"
        );
        world.run();
    }
    measure(&mut world, Mode::Int8V1, 0, 2);
    world.run();
    measured(&world);
}

#[test]
fn the_engine_says_what_is_wrong_with_a_request() {
    let mut world = loaded(&small());
    let mut check = |prompt_ids: Vec<u32>, code: TrResult, words: &str| {
        let request = world.next_request();
        let measure = Measure {
            prompt_ids,
            max_new: 1,
            prefill_tile: 0,
            mode: Mode::Int8V1,
        };
        world.command(Command::Measure { request, measure });
        world.run();
        let error = world.failure(Subject::Request(request));
        assert_eq!(error.code, code, "{error:?}");
        assert!(error.what.contains(words), "{error:?}");
    };
    check(vec![], TrResult::InvalidArgument, "empty");
    check(vec![1, 50], TrResult::InvalidArgument, "50");
    check(vec![1; 97], TrResult::ContextExceeded, "97");
    // None of these cost the model.
    measure(&mut world, Mode::Int8V1, 0, 2);
    world.run();
    measured(&world);
}

#[test]
fn a_context_that_the_model_does_not_have() {
    let model = small();
    let mut world = with(&model);
    let (id, context) = (model.id(), 5_000);
    world.command(Command::Load { model: id, context });
    world.run();
    let error = world.failure(Subject::Load(id));
    assert_eq!(error.code, TrResult::ContextExceeded);
    load(&mut world, id);
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
}

#[test]
fn commands_wait_until_the_worker_is_ready() {
    let mut world = World::not_started(Default::default());
    for _ in 0..COMMANDS_MAX {
        world.command(Command::ListModels);
    }
    assert!(world.events.is_empty());
    world.command(Command::Diagnostics);
    illegal(&world, Subject::Start);
    world.start(NativeEngine::default());
    let lists = world
        .events
        .iter()
        .filter(|event| matches!(event, Event::Models(_)));
    assert_eq!(lists.count(), COMMANDS_MAX);
}

#[test]
fn without_an_engine_everything_is_refused_with_the_reason() {
    let mut world = World::not_started(Default::default());
    world.command(Command::ListModels);
    let error = worker::lane::LaneRefusal::NoneLeft.report();
    world.give(Input::NotStarted {
        error: error.clone(),
        downgrades: vec![],
    });
    world.command(Command::Catalogue);
    world.run();
    for subject in [Subject::Start, Subject::Store, Subject::Catalogue] {
        assert_eq!(world.failure(subject), &error);
    }
}

#[test]
fn a_start_removes_what_nothing_needs() {
    let world = with(&small());
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
    let world = with(&small());
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
    load(&mut world, broken);
    world.failure(Subject::Load(broken));
    world.command(Command::DeleteModel { model: broken });
    world.run();
    assert!(!world.names().contains(&names::done(root)));
}

#[test]
fn failures_are_kept_without_what_was_said() {
    let mut world = World::new();
    for _ in 0..RECORDS_MAX + 5 {
        world.import_file("secret-name.gguf", b"<html>".to_vec());
    }
    world.command(Command::Diagnostics);
    match world.events.last() {
        Some(Event::Diagnostics(diagnostics)) => {
            assert_eq!(diagnostics.records.len(), RECORDS_MAX);
            assert_eq!(diagnostics.records[0].stage, Stage::Convert);
        }
        other => panic!("{other:?}"),
    }
}
