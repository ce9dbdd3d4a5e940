//! What is legal when, with small models that have no tokenizer.

mod world;

use format::ModelId;
use protocol::{
    Command, Event, Finish, ImportId, Measure, Message, Mode, RequestId, Sampling, Stage, Subject,
    TrResult,
};
use worker::session::{COMMANDS_MAX, RECORDS_MAX, REQUESTS_MAX};
use worker::{Input, NativeEngine};
use world::World;
use world::models::small;

#[test]
fn without_a_model_in_the_engine() {
    let model = small();
    let id = model.id();
    let mut world = World::with(&model);
    let nowhere = ModelId { length: 1, ..id };
    let request = world.measure(Mode::Int8V1, 0, 1);
    world.illegal(Subject::Request(request));
    let request = world.next_request();
    world.command(Command::Chat {
        request,
        messages: vec![],
        sampling: Sampling::GREEDY,
        kept_as: None,
    });
    world.illegal(Subject::Request(request));
    world.command(Command::Stop { request });
    world.illegal(Subject::Request(request));
    world.command(Command::Unload);
    world.illegal(Subject::Asked);
    let import = ImportId(77);
    world.command(Command::CancelImport {
        import,
        discard: true,
    });
    world.illegal(Subject::Import(import));
    world.load(nowhere);
    world.illegal(Subject::Load(nowhere));
}

#[test]
fn while_a_model_is_loaded_and_while_a_request_runs() {
    let model = small();
    let id = model.id();
    let mut world = World::with(&model);
    let context = 0;
    world.command(Command::Load { model: id, context });
    world.command(Command::Load { model: id, context });
    world.illegal(Subject::Load(id));
    world.command(Command::DeleteModel { model: id });
    world.illegal(Subject::Model(id));
    let request = world.measure(Mode::Int8V1, 0, 1);
    world.illegal(Subject::Request(request));
    world.run();
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));

    // While a request runs.
    let request = world.measure(Mode::Int8V1, 0, 40);
    world.run_until(|event| matches!(event, Event::Prefill { .. }));
    world.command(Command::Unload);
    world.illegal(Subject::Asked);
    world.command(Command::DeleteModel { model: id });
    world.illegal(Subject::Model(id));
    world.command(Command::Load {
        model: id,
        context: 0,
    });
    world.illegal(Subject::Load(id));
    world.run();
    assert!(
        matches!(world.events.last(), Some(Event::Measured { request: r, .. }) if *r == request)
    );
}

#[test]
fn without_a_tokenizer_nobody_can_talk_and_an_unloaded_model_can_be_deleted() {
    let model = small();
    let mut world = World::loaded(&model);
    let request = world.next_request();
    world.command(Command::Chat {
        request,
        messages: vec![Message {
            role: protocol::Role::User,
            content: "Hello".into(),
        }],
        sampling: Sampling::GREEDY,
        kept_as: None,
    });
    let error = world.failure(Subject::Request(request));
    assert_eq!(error.code, TrResult::UnsupportedFeature);
    world.command(Command::Unload);
    world.command(Command::DeleteModel { model: model.id() });
    world.run();
    assert_eq!(world.events.last(), Some(&Event::Models(Vec::new())));
    assert!(world.names().is_empty());
}

#[test]
fn requests_wait_in_order_and_can_be_stopped_before_they_begin() {
    let mut world = World::loaded(&small());
    let requests: Vec<RequestId> = (0..REQUESTS_MAX)
        .map(|_| world.measure(Mode::Int8V1, 0, 3))
        .collect();
    let one_more = world.measure(Mode::Int8V1, 0, 3);
    world.illegal(Subject::Request(one_more));
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
    let mut world = World::loaded(&small());
    // In the prompt, in the answer, and while the engine is opened anew for the request.
    for (tile, turns) in [(1, 5), (1, 70), (9, 1)] {
        let request = world.measure(Mode::Int8V1, tile, 60);
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
    world.measure(Mode::Int8V1, 0, 2);
    world.run();
    world.measured();
}

#[test]
fn the_engine_says_what_is_wrong_with_a_request() {
    let mut world = World::loaded(&small());
    let mut check = |prompt_ids: Vec<u32>, code: TrResult, words: &str| {
        let request = world.next_request();
        let measure = Measure {
            prompt_ids,
            max_new: 1,
            prefill_tile: 0,
            mode: Mode::Int8V1,
            reuses: false,
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
    world.measure(Mode::Int8V1, 0, 2);
    world.run();
    world.measured();
}

#[test]
fn commands_wait_until_the_worker_is_ready() {
    let mut world = World::not_started(Default::default());
    for _ in 0..COMMANDS_MAX {
        world.command(Command::ListModels);
    }
    assert!(world.events.is_empty());
    world.command(Command::ListModels);
    world.illegal(Subject::Store);
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
    // But for what helps to find out why.
    world.command(Command::Diagnostics);
    let Some(Event::Diagnostics(told)) = world.events.last() else {
        panic!("{:?}", world.events.last());
    };
    assert_eq!((&told.lane, told.storage), (&None, None));
    assert_eq!(told.records[0].report, error);
    world.command(Command::Catalogue { newest: 0 });
    world.run();
    for subject in [Subject::Start, Subject::Store, Subject::Catalogue] {
        assert_eq!(world.failure(subject), &error);
    }
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
            assert_eq!(diagnostics.records[0].report.stage, Stage::Convert);
            let told = format!("{:?}", diagnostics.records);
            assert!(!told.contains("secret"), "{told}");
        }
        other => panic!("{other:?}"),
    }
}
