//! Hops 2 to 7 with the real model: a dropped GGUF file becomes text on the page.

mod world;

use format::{Header, ModelId};
use prompt::{ChatMessage, Generation, Prompter};
use protocol::abi::{
    FLAG_COLD, FLAG_DIGEST, FLAG_IGNORE_EOS, KV_F16, MODE_INT8_V1, Options, STEP_DONE, STEP_MORE,
};
use protocol::{
    ChatAbility, Command, Event, Figures, Finish, Measure, Message, Mode, RequestId, Role,
    Sampling, Subject, TrResult,
};
use store::{Catalog, MemoryCatalog, names};
use worker::{Engine, NativeEngine, Request};
use world::World;
use world::models::smollm2;

/// Case 18 of `golden/smollm2-135m/greedy.json`: no token of the answer has a margin below 0.9, and
/// 8-bit activations never departed from the reference at more than 0.6.
const QUESTION: &str = "Summarise: The cat sat on the mat. The mat was red.";
const ANSWER: &str = "The cat sat on a red mat.";

fn message(content: &str) -> Message {
    Message {
        role: Role::User,
        content: content.into(),
    }
}

fn greedy(max_new: u32) -> Sampling {
    Sampling {
        max_new,
        ..Sampling::GREEDY
    }
}

fn chat(world: &mut World, messages: Vec<Message>, sampling: Sampling) -> RequestId {
    let request = world.next_request();
    world.command(Command::Chat {
        request,
        messages,
        sampling,
        kept_as: None,
    });
    request
}

fn text(world: &World, wanted: RequestId) -> String {
    let of_request = |event: &Event| match event {
        Event::Text { request, text } if *request == wanted => Some(text.clone()),
        _ => None,
    };
    world.events.iter().filter_map(of_request).collect()
}

fn done(world: &World, wanted: RequestId) -> (Finish, Figures) {
    let of_request = |event: &Event| match event {
        Event::Done {
            request,
            finish,
            figures,
        } if *request == wanted => Some((*finish, *figures)),
        _ => None,
    };
    world
        .events
        .iter()
        .find_map(of_request)
        .expect("the request has ended")
}

/// The stored model, opened without the session: its prompter, and ids straight from the engine.
struct Direct {
    prompter: Prompter,
    engine: NativeEngine<store::MemoryDisk>,
}

impl Direct {
    fn open(directory: &MemoryCatalog, id: ModelId) -> Direct {
        let file = directory
            .get(&names::done(id.root))
            .expect("the model is stored");
        let first = file.first_chunk().expect("a header");
        let len = format::header_len(*first, id.length).expect("a header") as usize;
        let header = Header::parse(&file[..len], id.length).expect("a header");
        let payload = header.tensor("tokenizer").expect("a tokenizer");
        let payload = &file[payload.range.start as usize..payload.range.end as usize];
        let prompter = Prompter::open(&header.manifest, payload).expect("a tokenizer");
        // A copy, because the session holds the file itself.
        let copy = MemoryCatalog::default();
        copy.put("copy", file.clone());
        let disk = copy.open("copy").expect("nobody has it");
        let mut engine = NativeEngine::default();
        let options = Options {
            mode: MODE_INT8_V1,
            kv_format: KV_F16,
            context: 4096,
            ..Options::default()
        };
        let opened = engine
            .open(&file[..len], id.length, &options, disk)
            .expect("it fits");
        let piece = u64::from(format::PIECE_BYTES);
        for at in (opened.first..id.length).step_by(piece as usize) {
            let len = (id.length - at).min(piece) as u32;
            engine.load_piece(at, len).expect("a piece");
        }
        engine.ready().expect("sound weights");
        Direct { prompter, engine }
    }

    fn ids(&mut self, prompt: &[u32], max_new: u32, flags: u32) -> Vec<u32> {
        let request = Request {
            ids: prompt,
            vocab: self.prompter.vocab(),
            sampling: greedy(max_new),
            flags,
            number: 0,
        };
        self.engine.begin(&request).expect("a sound request");
        let mut ids = Vec::new();
        loop {
            let step = self.engine.step().expect("a step");
            if step.status != STEP_MORE && step.has_token == 1 {
                ids.push(step.token);
            }
            if step.status == STEP_DONE {
                return ids;
            }
        }
    }
}

/// One long walk, because the model is large: import, load, chat, a second turn, stop, measure.
#[test]
fn from_a_dropped_file_to_text() {
    let mut world = World::new();
    let id = import(&mut world);
    load(&mut world, id);
    let mut direct = Direct::open(&world.directory, id);
    two_turns(&mut world, &mut direct);
    stop_in_prefill_and_in_decode(&mut world, &mut direct);
    measure(&mut world, &mut direct);
    diagnose(&mut world);
    damage_is_named(world, id);
}

fn import(world: &mut World) -> ModelId {
    match world.import_file("SmolLM2.gguf", smollm2()) {
        Event::Imported {
            model,
            already_here: false,
            ..
        } => {
            assert_eq!((model.context, model.chat), (8192, ChatAbility::Yes));
            let root = model.id.root;
            let names = [names::pieces(root), names::done(root)];
            assert!(world.names().iter().eq(&names), "{:?}", world.names());
            model.id
        }
        other => panic!("{other:?}"),
    }
}

fn load(world: &mut World, model: ModelId) {
    let context = 0;
    world.command(Command::Load { model, context });
    world.run();
    match world.events.last() {
        Some(Event::Loaded { model: loaded, fit }) => {
            assert_eq!(loaded.id, model);
            assert_eq!(fit.context, 4096);
            assert!(fit.weights > 90_000_000 && fit.total > fit.weights && fit.limit > fit.total);
        }
        other => panic!("{other:?}"),
    }
    let loading = |event: &&Event| matches!(event, Event::Loading { .. });
    let last = world.events.iter().rfind(loading);
    let (done, total) = (model.length, model.length);
    assert_eq!(last, Some(&Event::Loading { model, done, total }));
}

fn two_turns(world: &mut World, direct: &mut Direct) {
    let max_new = 24;
    let request = chat(world, vec![message(QUESTION)], greedy(max_new));
    world.run();
    let prompted = [ChatMessage {
        role: "user",
        content: QUESTION,
    }];
    let prompt = direct
        .prompter
        .chat(&prompted, Generation::Open)
        .expect("a prompt");
    let ids = direct.ids(&prompt, max_new, FLAG_COLD);
    let (finish, figures) = done(world, request);
    let answer: Vec<u32> = match finish {
        Finish::Stop => ids[..ids.len() - 1].to_vec(),
        _ => ids.clone(),
    };
    let expected = direct.prompter.decode(&answer).expect("known ids");
    assert_eq!(text(world, request), expected);
    assert_eq!((finish, expected.as_str()), (Finish::Stop, ANSWER));
    assert_eq!(figures.prompt_tokens as usize, prompt.len());
    assert_eq!(figures.new_tokens as usize, ids.len());
    assert!(figures.prefill_ms > 0.0 && figures.decode_ms > 0.0);
    let prefill = |event: &&Event| matches!(event, Event::Prefill { .. });
    let total = prompt.len() as u32;
    let done = total;
    assert_eq!(
        world.events.iter().rfind(prefill),
        Some(&Event::Prefill {
            request,
            done,
            total
        })
    );

    // The second turn builds on the first one's positions.
    let mut messages = vec![message(QUESTION), message(&text(world, request))];
    messages[1].role = Role::Assistant;
    messages.push(message("And the dog?"));
    let request = chat(world, messages, greedy(8));
    world.run();
    let (_, figures) = self::done(world, request);
    assert!(
        figures.reused_tokens >= figures.prompt_tokens / 2,
        "{figures:?}"
    );
}

fn stop_in_prefill_and_in_decode(world: &mut World, direct: &mut Direct) {
    let long = "All work and no play makes Jack a dull boy. ".repeat(40);
    let request = chat(world, vec![message(&long)], greedy(8));
    world.run_until(|event| matches!(event, Event::Prefill { .. }));
    world.command(Command::Stop { request });
    // Not even one more turn: the command itself ends the request.
    let (finish, figures) = done(world, request);
    assert_eq!((finish, figures.new_tokens), (Finish::Cancelled, 0));
    assert_eq!(text(world, request), "");
    world.run();

    let request = chat(world, vec![message(QUESTION)], greedy(64));
    world.run_until(|event| matches!(event, Event::Text { .. }));
    let before = text(world, request);
    world.command(Command::Stop { request });
    world.run();
    assert_eq!(done(world, request).0, Finish::Cancelled);
    assert!(text(world, request).starts_with(&before));

    // What was stopped leaves no trace in what comes after.
    let request = chat(world, vec![message(QUESTION)], greedy(4));
    world.run();
    let prompted = [ChatMessage {
        role: "user",
        content: QUESTION,
    }];
    let prompt = direct
        .prompter
        .chat(&prompted, Generation::Open)
        .expect("a prompt");
    let ids = direct.ids(&prompt, 4, FLAG_COLD);
    let expected = direct.prompter.decode(&ids).expect("known ids");
    assert_eq!(text(world, request), expected);
}

fn measure(world: &mut World, direct: &mut Direct) {
    let prompt_ids: Vec<u32> = (1_000..1_040).collect();
    let max_new = 4;
    let flags = FLAG_COLD | FLAG_DIGEST | FLAG_IGNORE_EOS;
    let expected = direct.ids(&prompt_ids, max_new, flags);
    let digest = direct.engine.digest().expect("a digest");
    // Another tile: the engine is opened anew, and gives the same bits (contract, rule 3).
    for prefill_tile in [0, 7] {
        let request = world.next_request();
        let measure = Measure {
            prompt_ids: prompt_ids.clone(),
            max_new,
            prefill_tile,
            mode: Mode::Int8V1,
            reuses: false,
        };
        world.command(Command::Measure { request, measure });
        world.run();
        match world.events.last() {
            Some(Event::Measured {
                request: measured,
                figures,
                logits_sha256,
                ids,
            }) => {
                assert_eq!(
                    (*measured, ids, *logits_sha256),
                    (request, &expected, digest)
                );
                assert_eq!((figures.prompt_tokens, figures.reused_tokens), (40, 0));
            }
            other => panic!("{other:?}"),
        }
    }
    // The same work without a digest ends as a chat does.
    let request = world.next_request();
    let measure = Measure {
        prompt_ids,
        max_new,
        prefill_tile: 0,
        mode: Mode::Int8V1,
        reuses: false,
    };
    world.command(Command::Time { request, measure });
    world.run();
    match world.events.last() {
        Some(Event::Done {
            request: timed,
            finish,
            figures,
        }) => {
            assert_eq!((*timed, *finish), (request, Finish::Length));
            let counts = (
                figures.prompt_tokens,
                figures.reused_tokens,
                figures.new_tokens,
            );
            assert_eq!(counts, (40, 0, max_new));
        }
        other => panic!("{other:?}"),
    }
    // A chat afterwards has its own options again.
    let request = chat(world, vec![message("Hello")], greedy(2));
    world.run();
    assert_eq!(done(world, request).1.new_tokens, 2);
}

fn diagnose(world: &mut World) {
    world.command(Command::Diagnostics);
    match world.events.last() {
        Some(Event::Diagnostics(diagnostics)) => {
            assert!(diagnostics.scalar_calls + diagnostics.simd_calls > 0);
            let executed = &diagnostics.receipt.executed_path_evidence;
            assert_eq!(executed.scalar_kernel_calls, diagnostics.scalar_calls);
            assert_eq!(executed.simd_kernel_calls, diagnostics.simd_calls);
            assert!(diagnostics.fit.is_some() && diagnostics.records.is_empty());
            assert!(diagnostics.stored_bytes > 90_000_000);
        }
        other => panic!("{other:?}"),
    }
}

/// One byte of the stored file changes: the piece is named and the model is not used.
fn damage_is_named(mut world: World, id: ModelId) {
    world.command(Command::Unload);
    assert_eq!(world.events.last(), Some(&Event::Unloaded));
    let name = names::done(id.root);
    let mut file = world.directory.get(&name).expect("the model is stored");
    let piece = 50;
    file[piece * format::PIECE_BYTES as usize + 77] ^= 0x10;
    world.directory.put(&name, file);
    let (model, context) = (id, 0);
    world.command(Command::Load { model, context });
    world.run();
    let error = world.failure(Subject::Load(id));
    assert_eq!(error.code, TrResult::HashMismatch);
    assert!(error.what.contains("iece 50 "), "{error:?}");
    let request = chat(&mut world, vec![message("Hello")], greedy(2));
    world.run();
    let error = world.failure(Subject::Request(request));
    assert_eq!(error.code, TrResult::IllegalState);
    // Importing again is the remedy.
    import(&mut world);
    load(&mut world, id);
}
