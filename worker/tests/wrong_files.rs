//! What is not a model, or not the one that was asked for, is refused in plain words and leaves
//! nothing behind.

mod world;

use format::PIECE_BYTES;
use protocol::TrResult;
use store::Estimate;
use worker::SourceFault;
use world::models::{small, wide};
use world::{World, imported, refused};

/// Each wrong file is refused in plain words, and the directory stays as it was.
#[test]
fn wrong_files_change_nothing() {
    let good = small();
    let model = wide();
    let mut world = World::new();
    imported(world.import_file("good.slm", good.file));
    let before = world.names();
    let mut check = |name: &str, bytes: Vec<u8>, code: TrResult, words: &str| {
        let error = refused(world.import_file(name, bytes));
        assert_eq!(error.code, code, "{name}: {error:?}");
        assert!(error.what.contains(words), "{name}: {}", error.what);
        assert!(error.remedy.len() > 20, "{name}: {}", error.remedy);
        assert_eq!(world.names(), before, "{name}");
    };
    let html = b"<!DOCTYPE html><html><body>404</body></html>".to_vec();
    check("model.gguf", html.clone(), TrResult::Source, "web page");
    check("model.slm", html, TrResult::Source, "web page");
    check("empty.slm", Vec::new(), TrResult::Source, "empty");
    check("noise.bin", vec![0xa5; 5000], TrResult::Source, "a5 a5");
    let cut = model.file[..model.file.len() - 100].to_vec();
    check("cut.slm", cut, TrResult::InvalidModel, "end");
    let cut = model.file[..600].to_vec();
    check("cut.slm", cut, TrResult::InvalidModel, "header");
    let mut damaged = model.file.clone();
    damaged[20] ^= 0x20;
    check("damaged.slm", damaged, TrResult::InvalidModel, "");
    let mut longer = model.file.clone();
    longer.push(0);
    check("longer.slm", longer, TrResult::InvalidModel, "");
    let clip = world::models::gguf_of_family("clip");
    check("mmproj.gguf", clip, TrResult::UnsupportedFeature, "clip");
    let cut = world::models::gguf_of_family("llama")[..40].to_vec();
    check("cut.gguf", cut, TrResult::Source, "cut off");
    let zip = b"PK\x03\x04 and more than eight bytes".to_vec();
    check("pytorch_model.bin", zip, TrResult::Source, "ZIP");
}

/// A safetensors file that is no model of ours (from the golden data).
#[test]
fn a_plain_safetensors_file_is_named_as_such() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/golden/tiny/llama_mha/model.safetensors"
    );
    let bytes = std::fs::read(path).expect("the golden folder lies beside the checkout");
    let mut world = World::new();
    let error = refused(world.import_file("model.safetensors", bytes));
    assert_eq!(error.code, TrResult::UnsupportedFeature, "{error:?}");
    assert!(error.remedy.contains("safetensors"), "{error:?}");
    assert!(world.names().is_empty());
}

#[test]
fn a_server_that_sends_something_else() {
    let model = wide();
    let html = b"<!doctype html><title>Not found</title>".repeat(40_000);
    let check = |spoil: &dyn Fn(&mut World), code: TrResult, words: &str| {
        let mut world = World::new();
        world.serve(&model);
        spoil(&mut world);
        let import = world.ask_server(&model);
        world.run();
        let error = refused(world.last_of(import));
        assert_eq!(error.code, code, "{error:?}");
        assert!(error.what.contains(words), "{error:?}");
        world
    };
    let put = |url: String, bytes: Vec<u8>| {
        move |world: &mut World| drop(world.server.insert(url.clone(), bytes.clone()))
    };
    let fail = |url: String, fault: SourceFault| {
        move |world: &mut World| drop(world.faults.insert(url.clone(), fault.clone()))
    };
    let world = check(
        &put(model.pieces_url(), html.clone()),
        TrResult::Source,
        "web page",
    );
    assert!(world.names().is_empty());
    // As long as the model, so that only the hash can tell.
    let mut page = html.clone();
    page.resize(model.file.len(), b' ');
    let world = check(&put(model.url.clone(), page), TrResult::Source, "web page");
    assert!(world.names().is_empty());
    let world = check(
        &fail(model.url.clone(), SourceFault::Status(404)),
        TrResult::Source,
        "404",
    );
    assert!(world.names().is_empty());
    let world = check(
        &fail(model.pieces_url(), SourceFault::Unreachable),
        TrResult::Source,
        "reached",
    );
    let tries = store::FIRST_TRIES_MAX as usize;
    assert_eq!(world.asked.len(), tries, "a passing fault is tried again");
    let mut wrong = model.layer.to_bytes();
    wrong[0] ^= 1;
    let world = check(&put(model.pieces_url(), wrong), TrResult::HashMismatch, "");
    assert!(world.names().is_empty());
}

#[test]
fn a_lying_piece_is_named_and_what_was_right_stays() {
    let model = wide();
    let mut world = World::new();
    world.serve(&model);
    let mut file = model.file.clone();
    file[7 * PIECE_BYTES as usize + 9] ^= 1;
    world.server.insert(model.url.clone(), file);
    let import = world.ask_server(&model);
    world.run();
    let error = refused(world.last_of(import));
    assert_eq!(error.code, TrResult::HashMismatch);
    assert!(error.what.contains("iece 7"), "{error:?}");
    // The server is repaired: only what is missing is fetched.
    world.asked.clear();
    world.server.insert(model.url.clone(), model.file.clone());
    let import = world.ask_server(&model);
    world.run();
    imported(world.last_of(import));
    let asked = world.pieces_asked(&model.url);
    assert!(asked.contains_key(&7) && asked.len() < 8, "{asked:?}");
}

#[test]
fn no_room_is_known_before_the_first_byte() {
    let model = wide();
    let mut world = World::new();
    world.estimate = Estimate {
        usage: Some(0),
        quota: Some(1024 * 1024),
    };
    world.serve(&model);
    let import = world.ask_server(&model);
    world.run();
    let error = refused(world.last_of(import));
    assert_eq!(error.code, TrResult::Storage);
    assert!(world.names().is_empty());
    // The piece layer and the header, no more.
    assert_eq!(world.asked.len(), 2, "{:?}", world.asked);
}

#[test]
fn a_model_that_does_not_fit_is_refused_before_its_weights_are_fetched() {
    let model = wide();
    let mut world = World::not_started(Default::default());
    world.start(world::Engine::new(10_000_000));
    world.serve(&model);
    let import = world.ask_server(&model);
    world.run();
    let error = refused(world.last_of(import));
    assert_eq!(error.code, TrResult::OutOfMemory);
    assert!(error.what.contains("MB"), "{error:?}");
    assert!(world.names().is_empty());
    assert_eq!(world.pieces_asked(&model.url).len(), 1);
    let event = world.import_file("wide.slm", model.file);
    assert_eq!(refused(event).code, TrResult::OutOfMemory);
    assert!(world.names().is_empty());
}
