//! The publisher's list in a real browser: what is forged or damaged is refused before anything is
//! fetched, and of a sound one every source is used.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use e2e::{
    Act, Browser, Engine, Options, Page, Profile, Script, Scripted, Server, convert, golden,
    signing_seed,
};
use ed25519_dalek::{Signer, SigningKey};
use format::{Digest, Hasher, PieceLayer, Root};
use protocol::{
    PUBLISHED_SCHEMA, Published, PublishedModel, PublishedSource, Signature, Signed,
    catalogue_message,
};
use serde_json::value::RawValue;

const SOON: Duration = Duration::from_secs(60);
/// Where the publisher's list lies, beside the app.
const LIST: &str = "/catalogue.json";

/// A small model, and a server that offers none of its own.
struct Stage {
    app: Server,
    model: Arc<Vec<u8>>,
    layer: PieceLayer,
    _empty: tempfile::TempDir,
}

impl Stage {
    fn new() -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.slm");
        convert(
            &golden().unwrap().join("tiny/llama_gqa_tied"),
            "q8_0",
            &path,
        )
        .unwrap();
        let model = fs::read(&path).unwrap();
        let mut hasher = Hasher::default();
        hasher.update(&model);
        let empty = tempfile::tempdir().unwrap();
        let app = Server::start(Options {
            models: Some(empty.path().to_owned()),
            ..Options::default()
        });
        Stage {
            app: app.unwrap(),
            model: Arc::new(model),
            layer: hasher.finish(),
            _empty: empty,
        }
    }

    /// The list with this model, as the publisher would write it.
    fn list(&self, sources: &[&str]) -> Published {
        let source = |path: &&str| PublishedSource {
            url: format!("{path}/tiny.slm"),
            pieces_url: format!("{path}/tiny.slm.pieces"),
        };
        Published {
            schema: PUBLISHED_SCHEMA.into(),
            number: 5,
            models: vec![PublishedModel {
                name: "Published".into(),
                licence: Some("Apache-2.0".into()),
                root: self.layer.id.root,
                length: self.layer.id.length,
                sources: sources.iter().map(source).collect(),
            }],
        }
    }

    /// Its own server, so its own origin: the list, and what becomes of each source.
    fn serve(&self, list: Vec<u8>, sources: &[(&str, Act)]) -> Scripted {
        let layer = Arc::new(self.layer.to_bytes());
        let script = |body: &Arc<Vec<u8>>, then| Script {
            body: Arc::clone(body),
            acts: Vec::new(),
            then,
        };
        let mut scripts = vec![(LIST.to_owned(), script(&Arc::new(list), Act::Good))];
        for (path, act) in sources {
            scripts.push((format!("/{path}/tiny.slm"), script(&self.model, *act)));
            let layer = script(&layer, Act::Good);
            scripts.push((format!("/{path}/tiny.slm.pieces"), layer));
        }
        let scripts = scripts.iter().map(|(path, it)| (path.as_str(), it.clone()));
        Scripted::start(scripts.collect(), Some(self.app.host.clone())).unwrap()
    }
}

fn signed(list: &Published, key: &SigningKey) -> Vec<u8> {
    let text = serde_json::to_string(list).unwrap();
    let signature = Signature(key.sign(&catalogue_message(&text)).to_bytes());
    let signed = RawValue::from_string(text).unwrap();
    serde_json::to_vec_pretty(&Signed { signed, signature }).unwrap()
}

/// What stands in the list's place, and the words of its refusal.
fn forgeries(stage: &Stage, key: &SigningKey) -> Vec<(Vec<u8>, &'static str)> {
    let sound = signed(&stage.list(&["a"]), key);
    let text = String::from_utf8(sound.clone()).unwrap();
    let mut evil = stage.list(&["a"]);
    evil.models[0].root = Root(Digest([0x66; 32]));
    let evil = serde_json::to_string(&evil).unwrap();
    let was = serde_json::to_string(&stage.list(&["a"])).unwrap();
    let swapped = text.replace(&was, &evil);
    assert_ne!(
        swapped, text,
        "the list stands in the file as it was signed"
    );
    let stranger = SigningKey::from_bytes(&[9; 32]);
    let mut oversize = sound.clone();
    oversize.resize(3 * 1024 * 1024, b' ');
    vec![
        (signed(&stage.list(&["a"]), &stranger), "did not sign"),
        (swapped.into_bytes(), "did not sign"),
        (sound[..sound.len() / 2].to_vec(), "not one of this version"),
        (oversize, "larger than"),
    ]
}

async fn walk(engine: Engine) {
    let stage = Stage::new();
    let key = SigningKey::from_bytes(&signing_seed().unwrap());
    let profile = Profile::fresh().unwrap();
    let browser = Browser::start_engine(engine, &profile).await.unwrap();
    for (list, words) in forgeries(&stage, &key) {
        let server = stage.serve(list, &[("a", Act::Good)]);
        let page = Page::open(&browser, &server.url("/")).await.unwrap();
        let told = page.wait_text("#error", SOON).await.unwrap();
        assert!(told.contains(words), "{words}: {told}");
        let remedy = page.text("#error .remedy").await.unwrap();
        assert!(remedy.contains("not offered"), "{remedy}");
        page.wait_state("empty", SOON).await.unwrap();
        assert!(page.stored_models().await.unwrap().is_empty(), "{words}");
        let asked = server.asked();
        let fetched = asked.iter().find(|asked| asked.path != LIST);
        assert!(fetched.is_none(), "{words}: {fetched:?}");
        let offered = page.text("#get-default").await.unwrap();
        assert_eq!(offered, "", "nothing of it is offered");
    }

    // Signed, and yet no server has such a model: the root is another one, or the length.
    let mut root = stage.list(&["a"]);
    root.models[0].root = Root(Digest([0x66; 32]));
    let mut length = stage.list(&["a"]);
    length.models[0].length += 1;
    for list in [root, length] {
        let server = stage.serve(signed(&list, &key), &[("a", Act::Good)]);
        let page = Page::open(&browser, &server.url("/")).await.unwrap();
        page.click("#get-default").await.unwrap();
        let told = page.wait_text("#error", SOON).await.unwrap();
        assert!(told.contains("This server"), "it names its source: {told}");
        assert!(page.stored_models().await.unwrap().is_empty(), "{told}");
    }

    // One source after another, until one has it.
    let sources = [
        ("missing", Act::Status(404)),
        ("forbidden", Act::Status(403)),
        ("page", Act::Page),
        ("other", Act::Other),
        ("good", Act::Good),
    ];
    let names: Vec<&str> = sources.iter().map(|(name, _)| *name).collect();
    let list = signed(&stage.list(&names), &key);
    let server = stage.serve(list, &sources);
    let page = Page::open(&browser, &server.url("/")).await.unwrap();
    page.click("#get-default").await.unwrap();
    page.wait_state("ready", SOON).await.unwrap();
    let asked: Vec<String> = server.asked().into_iter().map(|asked| asked.path).collect();
    for name in names {
        let path = format!("/{name}/tiny.slm");
        let times = asked.iter().filter(|asked| **asked == path).count();
        assert_eq!(times, 1, "{path}: {asked:?}");
    }
    // One layer is enough for all of them.
    let layers = asked.iter().filter(|path| path.ends_with(".pieces"));
    assert_eq!(layers.count(), 1, "{asked:?}");
}

#[tokio::test]
async fn the_publishers_list_in_chromium() {
    walk(Engine::Chromium).await;
}

#[tokio::test]
async fn the_publishers_list_in_firefox() {
    walk(Engine::Firefox).await;
}
