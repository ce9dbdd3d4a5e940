//! Models from any address, and from several files. The result must be that of the same bytes as
//! one local file: equal root.

mod world;

use format::PIECE_BYTES;
use protocol::{Command, Event, ImportId, TrResult};
use store::names;
use worker::SourceFault;
use world::models::{smollm2, wide};
use world::{World, imported, refused};

const URL: &str = "https://elsewhere/models/a.slm";

#[test]
fn a_slm_file_from_any_address() {
    let model = wide();
    let mut world = World::new();
    world.server.insert(URL.into(), model.file.clone());
    let import = world.ask_address(URL);
    world.run();
    assert_eq!(imported(world.last_of(import)).0.id, model.id());
    world.asked_once(URL, model.file.len());
    let root = model.id().root;
    let mut expected = vec![names::done(root), names::pieces(root)];
    expected.sort();
    assert!(world.names().iter().eq(&expected), "{:?}", world.names());
    let stored = world.directory.get(&names::done(root));
    assert_eq!(stored.as_ref(), Some(&model.file));
    // The same file once more is found out, and nothing of it stays.
    let import = world.ask_address(URL);
    world.run();
    assert!(imported(world.last_of(import)).1);
    assert!(world.names().iter().eq(&expected), "{:?}", world.names());
}

/// The real model's GGUF file: fetched once, converted, and equal to the local conversion.
#[test]
fn a_gguf_file_from_any_address_is_fetched_once() {
    let url = "https://elsewhere/SmolLM2-135M-Instruct.Q4_1.gguf?download=true";
    let file = smollm2();
    let mut world = World::new();
    let name = "SmolLM2-135M-Instruct.Q4_1.gguf";
    let local = imported(world.import_file(name, file.clone())).0;
    let mut world = World::new();
    world.server.insert(url.into(), file.clone());
    let import = world.ask_address(url);
    world.run();
    assert_eq!(imported(world.last_of(import)).0.id, local.id);
    world.asked_once(url, file.len());
    assert_eq!(world.names().len(), 2, "{:?}", world.names());
}

/// D11: the server does not say how long the file is.
#[test]
fn an_address_without_a_length_is_kept_as_it_comes() {
    let gguf = "https://elsewhere/SmolLM2-135M-Instruct.Q4_1.gguf";
    let name = "SmolLM2-135M-Instruct.Q4_1.gguf";
    let local = imported(World::new().import_file(name, smollm2())).0;
    for (url, file, id) in [(URL, wide().file, wide().id()), (gguf, smollm2(), local.id)] {
        let mut world = World::new();
        world.endless.insert(url.into());
        world.server.insert(url.into(), file);
        let import = world.ask_address(url);
        world.run();
        assert_eq!(imported(world.last_of(import)).0.id, id);
        assert_eq!(world.asked.len(), 1, "{:?}", world.asked);
        assert_eq!(world.names().len(), 2, "{:?}", world.names());
    }
    // What is no model is not kept until its end, and what is stopped leaves nothing.
    let mut world = World::new();
    world.endless.insert(URL.into());
    world.server.insert(URL.into(), vec![0xa5; 9_000_000]);
    let import = world.ask_address(URL);
    world.run();
    let error = refused(world.last_of(import));
    assert!(error.what.contains("neither"), "{error:?}");
    assert!(world.names().is_empty());
    world.server.insert(URL.into(), wide().file);
    let import = world.ask_address(URL);
    world.run_until(|event| matches!(event, Event::Import(p) if p.bytes >= 3 * 1024 * 1024));
    let discard = false;
    world.command(Command::CancelImport { import, discard });
    world.run();
    assert!(world.names().is_empty(), "{:?}", world.names());
}

/// The tab is closed in the middle: the next start asks for what is missing, and for nothing else.
#[test]
fn an_address_goes_on_after_a_reload() {
    let model = wide();
    let mut world = World::new();
    world.server.insert(URL.into(), model.file.clone());
    world.ask_address(URL);
    world.run_until(|event| matches!(event, Event::Import(p) if p.bytes >= 5 * 1024 * 1024));
    let (import, discard) = (ImportId(1), false);
    world.command(Command::CancelImport { import, discard });
    world.run();
    let kept = world.directory.clone();
    let first = world.pieces_asked(URL);
    drop(world);

    let mut world = World::on(kept);
    world.server.insert(URL.into(), model.file.clone());
    world.command(Command::ListModels);
    let partial = match world.events.last() {
        Some(Event::Models(models)) => models[0].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(partial.name, "a.slm");
    let kept_bytes = partial.partial.expect("it is not whole");
    assert!(kept_bytes >= 5 * 1024 * 1024, "{kept_bytes}");
    let import = world.ask_address(URL);
    world.run();
    assert_eq!(imported(world.last_of(import)).0.id, model.id());
    let then = world.pieces_asked(URL);
    let all = model.id().pieces() as u64;
    let kept_pieces = kept_bytes / u64::from(PIECE_BYTES);
    assert_eq!(
        then.len() as u64,
        all - kept_pieces,
        "{first:?} then {then:?}"
    );
}

/// D5, D6: another file stands there after a reload. It begins anew, and nothing is mixed.
#[test]
fn a_file_that_changed_meanwhile_begins_anew() {
    let (old, new) = (wide(), {
        let mut file = wide().file;
        file.truncate(file.len() - 4);
        file
    });
    let mut world = World::new();
    world.server.insert(URL.into(), new);
    world.ask_address(URL);
    world.run_until(|event| matches!(event, Event::Failed { .. } | Event::Import(_)));
    drop(world);
    let mut world = World::new();
    world.server.insert(URL.into(), old.file.clone());
    world.ask_address(URL);
    world.run_until(|event| matches!(event, Event::Import(p) if p.bytes >= 5 * 1024 * 1024));
    // A longer file with other bytes takes its place.
    let newer = world::models::small();
    world.server.insert(URL.into(), newer.file.clone());
    world.run();
    let event = world.last_of(ImportId(1));
    assert_eq!(imported(event).0.id, newer.id());
    assert_eq!(world.names().len(), 2, "{:?}", world.names());
}

#[test]
fn a_discarded_address_leaves_nothing() {
    let model = wide();
    for turns in (0..400).step_by(7) {
        let mut world = World::new();
        world.server.insert(URL.into(), model.file.clone());
        let import = world.ask_address(URL);
        for _ in 0..turns {
            world.turn();
        }
        if world
            .events
            .iter()
            .any(|event| matches!(event, Event::Imported { .. }))
        {
            return;
        }
        let discard = true;
        world.command(Command::CancelImport { import, discard });
        world.run();
        if let Event::ImportCancelled { .. } = world.last_of(import) {
            assert!(world.names().is_empty(), "{turns}: {:?}", world.names());
        }
    }
}

#[test]
fn what_is_no_model_is_refused_before_anything_is_stored() {
    let check = |url: &str, bytes: Option<Vec<u8>>, words: &str| {
        let mut world = World::new();
        if let Some(bytes) = bytes {
            world.server.insert(url.into(), bytes);
        }
        let import = world.ask_address(url);
        world.run();
        let error = refused(world.last_of(import));
        assert!(error.what.contains(words), "{error:?}");
        assert!(world.names().is_empty());
        world
    };
    let page = b"<!DOCTYPE html><title>Sign in</title>".repeat(200_000);
    check(URL, Some(page), "web page");
    check(URL, None, "404");
    check(URL, Some(vec![0xa5; 3_000_000]), "a5 a5");
    // D25: the missing part is named.
    let url = "https://h/m-00001-of-00002.gguf";
    let world = check(
        url,
        Some(vec![0x47; 100]),
        "Part 2 of 2 (m-00002-of-00002.gguf)",
    );
    assert!(world.asked.len() <= 2, "{:?}", world.asked);
}

/// A model that does not fit is refused by its header, which is all that is fetched of it.
#[test]
fn a_model_that_does_not_fit_costs_its_header_only() {
    let model = wide();
    let mut world = World::not_started(Default::default());
    world.start(world::Engine::new(10_000_000));
    world.server.insert(URL.into(), model.file.clone());
    let import = world.ask_address(URL);
    world.run();
    assert_eq!(refused(world.last_of(import)).code, TrResult::OutOfMemory);
    assert_eq!(world.pieces_asked(URL).len(), 1);
    let url = "https://elsewhere/a.gguf";
    world.server.insert(url.into(), smollm2());
    let import = world.ask_address(url);
    world.run();
    assert_eq!(refused(world.last_of(import)).code, TrResult::OutOfMemory);
    assert!(
        world.pieces_asked(url).len() <= 4,
        "{:?}",
        world.pieces_asked(url)
    );
    assert!(world.names().is_empty());
}

/// The cause of a silence is told in words, and that it is over.
#[test]
fn a_silence_is_told() {
    let model = wide();
    let mut world = World::new();
    world.serve(&model);
    let import = world.ask_server(&model);
    world.run_until(|event| matches!(event, Event::Import(p) if p.pieces >= 4));
    world
        .faults
        .insert(model.url.clone(), SourceFault::Unreachable);
    let silence = |event: &Event| matches!(event, Event::ImportWaiting { why: Some(_), .. });
    world.run_until(silence);
    world.faults.clear();
    world.run();
    imported(world.last_of(import));
    let over = |event: &Event| matches!(event, Event::ImportWaiting { why: None, .. });
    assert!(world.events.iter().any(over));
    assert!(
        world
            .pieces_asked(&model.url)
            .values()
            .all(|times| *times <= 3)
    );
}

/// A folder of the golden data, its files in any order, beside ones that mean nothing.
#[test]
fn a_folder_of_safetensors() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/golden/tiny/llama_mha"
    );
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the golden folder lies beside the checkout") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            files.push((name, std::fs::read(&path).expect("a file")));
        }
    }
    let list = |files: &[(String, Vec<u8>)]| -> Vec<(&'static str, Vec<u8>)> {
        let leak = |name: &String| -> &'static str { name.clone().leak() };
        files
            .iter()
            .map(|(name, bytes)| (leak(name), bytes.clone()))
            .collect()
    };
    let mut world = World::new();
    let import = world.drop_files("llama_mha", list(&files));
    world.run();
    let one = imported(world.last_of(import)).0;
    files.reverse();
    let mut world = World::new();
    let import = world.drop_files("llama_mha", list(&files));
    world.run();
    assert_eq!(imported(world.last_of(import)).0.id, one.id);
    files.retain(|(name, _)| name != "config.json");
    let import = world.drop_files("llama_mha", list(&files));
    world.run();
    let error = refused(world.last_of(import));
    assert!(error.what.contains("config.json"), "{error:?}");
}
