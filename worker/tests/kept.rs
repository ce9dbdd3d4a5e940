//! What was computed of a conversation survives the worker: with the real model, on a directory in
//! memory. A kept conversation goes on as if it had never been closed, and whatever happens to its
//! file costs time and nothing else.

mod world;

use format::{Digest, ModelId, Root, sha256};
use protocol::{Command, Event, Figures, Message, RequestId, Role, Sampling, TrResult};
use store::{Catalog, MemoryCatalog, names};
use world::World;
use world::models::smollm2;

const CONVERSATION: u64 = 7;
const QUESTION: &str = "Summarise: The cat sat on the mat. The mat was red. The dog slept beside \
                        it and dreamt of a bone that it had hidden under the old apple tree.";

fn key() -> Root {
    Root(Digest(sha256(&CONVERSATION.to_le_bytes()).0))
}

fn message(role: Role, content: &str) -> Message {
    Message {
        role,
        content: content.into(),
    }
}

/// A session on this directory with the model loaded.
fn visit(directory: &MemoryCatalog, model: ModelId) -> World {
    let mut world = World::on(directory.clone());
    let context = 512;
    world.command(Command::Load { model, context });
    world.run();
    assert!(matches!(world.events.last(), Some(Event::Loaded { .. })));
    world
}

fn import() -> (MemoryCatalog, ModelId) {
    let mut world = World::new();
    let model = match world.import_file("SmolLM2.gguf", smollm2()) {
        Event::Imported { model, .. } => model.id,
        other => panic!("{other:?}"),
    };
    (world.directory.clone(), model)
}

fn ask(world: &mut World, messages: &[Message], kept_as: Option<u64>) -> RequestId {
    let request = world.next_request();
    world.command(Command::Chat {
        request,
        messages: messages.to_vec(),
        sampling: Sampling {
            max_new: 12,
            ..Sampling::GREEDY
        },
        kept_as,
    });
    request
}

/// The answer, and what it took.
fn answer(world: &mut World, messages: &[Message], kept_as: Option<u64>) -> (String, Figures) {
    let request = ask(world, messages, kept_as);
    world.run();
    let text = world.events.iter().filter_map(|event| match event {
        Event::Text { request: of, text } if *of == request => Some(text.as_str()),
        _ => None,
    });
    let done = world.events.iter().find_map(|event| match event {
        Event::Done {
            request: of,
            figures,
            ..
        } if *of == request => Some(*figures),
        _ => None,
    });
    (text.collect(), done.expect("the request has ended"))
}

fn kept(world: &World) -> Option<(u32, u64)> {
    world.events.iter().rev().find_map(|event| match event {
        Event::Kept {
            conversations,
            bytes,
        } => Some((*conversations, *bytes)),
        _ => None,
    })
}

/// Codes of the failures that the session knows of.
fn failures(world: &mut World) -> Vec<TrResult> {
    world.command(Command::Diagnostics);
    match world.events.last() {
        Some(Event::Diagnostics(known)) => known.records.iter().map(|it| it.report.code).collect(),
        other => panic!("{other:?}"),
    }
}

/// The second turn of the conversation, and what a session that was never closed says to it.
struct Expected {
    second: Vec<Message>,
    text: String,
    reused: u32,
}

fn first() -> Vec<Message> {
    vec![message(Role::User, QUESTION)]
}

fn expected(directory: &MemoryCatalog, model: ModelId) -> Expected {
    let mut world = visit(directory, model);
    let (said, cold) = answer(&mut world, &first(), None);
    assert_eq!((cold.reused_tokens, kept(&world)), (0, None));
    let mut second = first();
    second.push(message(Role::Assistant, &said));
    second.push(message(Role::User, "And the dog?"));
    let (text, figures) = answer(&mut world, &second, None);
    // All of the first question at least.
    assert!(figures.reused_tokens >= cold.prompt_tokens, "{figures:?}");
    Expected {
        second,
        text,
        reused: figures.reused_tokens,
    }
}

#[test]
fn a_kept_conversation_goes_on_after_the_worker_is_gone() {
    let (directory, model) = import();
    let expected = expected(&directory, model);
    reopened(&directory, model, &expected);
    damaged(&directory, model, &expected);
    killed(&directory, model, &expected);
    of_other_options(&directory, model, &expected);
    forgotten(&directory, model, &expected);
}

/// Restored is as good as never closed: as many tokens reused, the same words.
fn reopened(directory: &MemoryCatalog, model: ModelId, expected: &Expected) {
    let mut world = visit(directory, model);
    answer(&mut world, &first(), Some(CONVERSATION));
    let (conversations, bytes) = kept(&world).expect("it was kept");
    let file = directory.get(&names::kept(key())).expect("its file");
    assert_eq!((conversations, bytes), (1, file.len() as u64));
    drop(world);

    let mut world = visit(directory, model);
    assert_eq!(kept(&world), Some((1, bytes)), "told at the start");
    let (text, figures) = answer(&mut world, &expected.second, Some(CONVERSATION));
    assert_eq!(text, expected.text);
    assert_eq!(figures.reused_tokens, expected.reused);
    assert!(kept(&world).is_some_and(|(_, more)| more >= bytes));
    assert_eq!(failures(&mut world), []);
    drop(world);

    // An earlier place of it, with other words after that.
    let mut world = visit(directory, model);
    let (_, figures) = answer(&mut world, &first(), Some(CONVERSATION));
    assert_eq!(figures.reused_tokens, figures.prompt_tokens - 1);
    assert_eq!(failures(&mut world), []);
}

/// A flipped bit in the head or in a page: told, computed again, and kept anew.
fn damaged(directory: &MemoryCatalog, model: ModelId, expected: &Expected) {
    let name = names::kept(key());
    for at in [50, 256 * 1024 + 12_345] {
        let mut file = directory.get(&name).expect("its file");
        file[at] ^= 4;
        directory.put(&name, file);
        let mut world = visit(directory, model);
        let (text, figures) = answer(&mut world, &expected.second, Some(CONVERSATION));
        assert_eq!(text, expected.text);
        assert_eq!(figures.reused_tokens, 0);
        assert_eq!(failures(&mut world), [TrResult::HashMismatch]);
        drop(world);

        let mut world = visit(directory, model);
        // The damaged file went before the answer was kept, or with it.
        let (text, _) = answer(&mut world, &expected.second, Some(CONVERSATION));
        assert_eq!(text, expected.text);
        assert_eq!(failures(&mut world), []);
    }
}

/// The worker ends at any moment of writing: what is found then is sound, and the answer the same.
fn killed(directory: &MemoryCatalog, model: ModelId, expected: &Expected) {
    for turns in 0..9 {
        directory.remove(&names::kept(key())).expect("its file");
        let mut world = visit(directory, model);
        answer(&mut world, &first(), Some(CONVERSATION));
        let request = ask(&mut world, &expected.second, Some(CONVERSATION));
        let is_done =
            |event: &Event| matches!(event, Event::Done { request: of, .. } if *of == request);
        world.run_until(is_done);
        for _ in 0..turns {
            world.turn();
        }
        drop(world);

        let mut world = visit(directory, model);
        let (text, figures) = answer(&mut world, &expected.second, Some(CONVERSATION));
        assert_eq!(text, expected.text, "after {turns} turns");
        assert!(figures.reused_tokens >= 32, "after {turns} turns");
        assert_eq!(failures(&mut world), [], "after {turns} turns");
    }
}

/// Kept by a cache with another identity: not used, and gone.
fn of_other_options(directory: &MemoryCatalog, model: ModelId, expected: &Expected) {
    let name = names::kept(key());
    let mut file = directory.get(&name).expect("its file");
    // Another identity, in a head that is sound otherwise.
    let count = u32::from_le_bytes(file[44..48].try_into().expect("a word")) as usize;
    let end = 48 + 4 * count + 36 * count.div_ceil(32);
    file[8] ^= 1;
    let hash = sha256(&file[..end]);
    file[end..end + 32].copy_from_slice(&hash.0);
    directory.put(&name, file);
    let mut world = visit(directory, model);
    let (text, figures) = answer(&mut world, &expected.second, Some(CONVERSATION));
    assert_eq!(
        (text.as_str(), figures.reused_tokens),
        (expected.text.as_str(), 0)
    );
    assert_eq!(failures(&mut world), [TrResult::UnsupportedFeature]);
}

fn forgotten(directory: &MemoryCatalog, model: ModelId, expected: &Expected) {
    let mut world = visit(directory, model);
    let (_, figures) = answer(&mut world, &expected.second, Some(CONVERSATION));
    let words = figures.reused_tokens;
    world.command(Command::ForgetKept {
        conversation: Some(CONVERSATION + 1),
    });
    world.run();
    assert!(kept(&world).is_some_and(|(conversations, _)| conversations == 1));
    for conversation in [Some(CONVERSATION), None] {
        let known = world.events.len();
        world.command(Command::ForgetKept { conversation });
        world.run();
        assert_eq!(kept(&world), Some((0, 0)));
        assert!(world.events.len() > known, "answered each time");
        assert_eq!(directory.get(&names::kept(key())), None);
    }
    // The engine still knows it, until it is closed.
    let (text, figures) = answer(&mut world, &expected.second, None);
    assert_eq!(text, expected.text);
    assert!(figures.reused_tokens >= words);
    assert_eq!(directory.get(&names::kept(key())), None);
    // While it is being answered.
    let request = ask(&mut world, &first(), Some(CONVERSATION));
    world.run_until(|event| matches!(event, Event::Text { .. }));
    world.command(Command::ForgetKept { conversation: None });
    world.run();
    let is_done =
        |event: &Event| matches!(event, Event::Done { request: of, .. } if *of == request);
    assert!(world.events.iter().any(is_done));
    assert_eq!(directory.get(&names::kept(key())), None);
    assert_eq!(failures(&mut world), []);
}
