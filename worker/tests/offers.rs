//! What a server and the publisher of the app offer, and which of it is believed.
#![allow(clippy::unwrap_used)]

mod world;

use ed25519_dalek::{Signer, SigningKey};
use protocol::{
    CATALOGUE_SCHEMA, Catalogue, CatalogueEntry, Command, Event, Offered, PUBLISHED_SCHEMA,
    Published, PublishedModel, PublishedSource, Signature, Signed, Subject, TrResult,
    catalogue_message,
};
use serde_json::value::RawValue;
use worker::SourceFault;
use world::World;
use world::models::{small, wide};

const OWN: &str = "catalogue.json";
const PUBLISHED: &str = "../catalogue.json";
/// Secret half of the key of RFC 8032, section 7.1, test 2.
const SECRET: [u8; 32] = [
    0x4c, 0xcd, 0x08, 0x9b, 0x28, 0xff, 0x96, 0xda, 0x9d, 0xb6, 0xc3, 0x46, 0xec, 0x11, 0x4e, 0x0f,
    0x5b, 0x8a, 0x31, 0x9f, 0x35, 0xab, 0xa6, 0x24, 0xda, 0x8c, 0xf6, 0xed, 0x4f, 0xb8, 0xa6, 0xfb,
];

fn own() -> Vec<u8> {
    let catalogue = Catalogue {
        schema: CATALOGUE_SCHEMA.into(),
        models: vec![small().entry()],
    };
    serde_json::to_vec(&catalogue).unwrap()
}

/// A list of both models.
fn published(number: u64) -> Published {
    let model = |entry: CatalogueEntry| PublishedModel {
        name: entry.name,
        licence: Some("Apache-2.0".into()),
        root: entry.root,
        length: entry.length,
        sources: vec![
            PublishedSource {
                url: format!("models/{}", entry.url),
                pieces_url: "https://host.example/layer".into(),
            },
            PublishedSource {
                url: format!("mirror/{}", entry.url),
                pieces_url: "https://mirror.example/layer".into(),
            },
        ],
    };
    Published {
        schema: PUBLISHED_SCHEMA.into(),
        number,
        models: vec![model(small().entry()), model(wide().entry())],
    }
}

fn signed(list: &Published, secret: [u8; 32]) -> Vec<u8> {
    let text = serde_json::to_string(list).unwrap();
    let signature = SigningKey::from_bytes(&secret).sign(&catalogue_message(&text));
    let file = Signed {
        signed: RawValue::from_string(text).unwrap(),
        signature: Signature(signature.to_bytes()),
    };
    serde_json::to_vec_pretty(&file).unwrap()
}

/// What is told of these two files; a missing one answers as servers do.
fn ask(world: &mut World, own: Option<Vec<u8>>, published: Option<Vec<u8>>, newest: u64) -> Event {
    for (url, body) in [(OWN, own), (PUBLISHED, published)] {
        world.faults.remove(url);
        match body {
            Some(body) => drop(world.server.insert(url.into(), body)),
            None => drop(world.faults.insert(url.into(), SourceFault::Status(404))),
        }
    }
    world.command(Command::Catalogue { newest });
    world.run();
    world.events.last().cloned().unwrap()
}

fn offered(event: Event) -> Offered {
    match event {
        Event::Catalogue(offered) => offered,
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_lists_are_told_together_and_the_servers_own_is_nearer() {
    let mut world = World::new();
    let list = signed(&published(3), SECRET);
    let found = offered(ask(&mut world, Some(own()), Some(list.clone()), 3));
    assert_eq!((found.number, found.refused), (Some(3), None));
    let urls: Vec<&str> = found
        .models
        .iter()
        .map(|entry| entry.url.as_str())
        .collect();
    assert_eq!(urls, ["small.slm", "../models/wide.slm"]);
    assert_eq!(found.models[1].pieces_url, "https://host.example/layer");
    let other = PublishedSource {
        url: "../mirror/wide.slm".into(),
        pieces_url: "https://mirror.example/layer".into(),
    };
    assert_eq!(found.models[1].others, [other]);
    // A plain folder of files has no list of its own.
    let found = offered(ask(&mut world, None, Some(list), 0));
    assert_eq!(found.models.len(), 2);
    // And no publisher is normal too.
    let found = offered(ask(&mut world, Some(own()), None, 9));
    assert_eq!((found.models, found.number), (vec![small().entry()], None));
    let page = b"<!doctype html><title>404</title>".to_vec();
    let found = offered(ask(&mut world, Some(own()), Some(page), 0));
    assert_eq!((found.models.len(), found.refused), (1, None));
}

#[test]
fn what_the_publisher_did_not_sign_is_refused_in_words() {
    let mut world = World::new();
    let sound = signed(&published(3), SECRET);
    let mut changed = String::from_utf8(sound.clone()).unwrap();
    changed = changed.replace("wide", "evil");
    let mut later = published(3);
    later.schema = "tinyrustlm.published-catalogue.v2".into();
    for (file, newest, words) in [
        (signed(&published(3), [7; 32]), 0, "did not sign"),
        (changed.into_bytes(), 0, "did not sign"),
        (signed(&later, SECRET), 0, "not one of this version"),
        (b"{}".to_vec(), 0, "not one of this version"),
        (
            sound[..sound.len() - 9].to_vec(),
            0,
            "not one of this version",
        ),
        (sound.clone(), 4, "number 3, and number 4 was seen before"),
    ] {
        let found = offered(ask(&mut world, Some(own()), Some(file), newest));
        let refused = found.refused.expect(words);
        assert_eq!(refused.code, TrResult::Source);
        assert!(refused.what.contains(words), "{refused:?}");
        // The server's own offer is as good as before, and nothing of the other one came in.
        assert_eq!((found.models, found.number), (vec![small().entry()], None));
    }
    // So is one that is too long to be read to its end.
    let most = 1 << 20;
    world.server.insert(OWN.into(), own());
    world
        .faults
        .insert(PUBLISHED.into(), SourceFault::TooLarge { most });
    world.command(Command::Catalogue { newest: 0 });
    world.run();
    let found = offered(world.events.last().cloned().unwrap());
    let refused = found.refused.expect("it is told");
    assert!(refused.what.contains("larger than 1.0 MB"), "{refused:?}");
    assert_eq!(found.models, vec![small().entry()]);
    // The session itself does not forget the greatest number either.
    let found = offered(ask(&mut world, None, Some(sound), 0));
    assert!(found.refused.is_none(), "{found:?}");
}

#[test]
fn a_server_that_offers_nothing_is_told_as_such() {
    let mut world = World::new();
    for (body, words) in [
        (None, "404"),
        (Some("<html>"), "web page"),
        (Some("{}"), "catalogue"),
    ] {
        ask(
            &mut world,
            body.map(|body| body.as_bytes().to_vec()),
            None,
            0,
        );
        let error = world.failure(Subject::Catalogue);
        assert!(error.what.contains(words), "{error:?}");
    }
}
