//! Failures are kept with what was going on, and without a word of what was said.
#![allow(clippy::unwrap_used)]

mod world;

use protocol::{Command, Diagnostics, Event, Message, RequestId, Role, Sampling, TrResult};
use world::World;

const MARKER: &str = "marker-of-a-private-prompt";

fn diagnostics(world: &mut World) -> Diagnostics {
    world.command(Command::Diagnostics);
    world.run();
    let mut events = world.events.iter().rev();
    let found = events.find_map(|event| match event {
        Event::Diagnostics(known) => Some((**known).clone()),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_refused_prompt_is_recorded_without_its_words() {
    let mut world = World::new();
    let request = RequestId(1);
    let messages = vec![Message {
        role: Role::User,
        content: MARKER.into(),
    }];
    let sampling = Sampling::GREEDY;
    // No model is there, so it is refused with a code.
    world.command(Command::Chat {
        request,
        messages,
        sampling,
        kept_as: None,
    });
    let known = diagnostics(&mut world);
    let [record] = known.records.as_slice() else {
        panic!("one record: {:?}", known.records);
    };
    assert_eq!(record.report.code, TrResult::IllegalState);
    assert_eq!(record.state, "Created");
    assert_eq!(record.model, None);
    assert!(record.at_ms <= known.now_ms);
    let text = serde_json::to_string(&known).unwrap();
    assert!(!text.contains(MARKER), "{text}");
    assert!(!text.contains("models/"), "{text}");
}
