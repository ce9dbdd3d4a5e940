//! Models that go to other browsers and come from them.

use p2p::Invite;
use protocol::{InvitedModel, Meeting, Met, PeerReport, SwarmCommand, SwarmEvent, SwarmStatus};

use super::*;

const SEED: u64 = 77;
const TRACKER: &str = "wss://t.example/announce";

fn wish(tracker: Option<&str>) -> ShareWish {
    ShareWish {
        tracker: tracker.map(Into::into),
        limit: None,
    }
}

fn share(trackers: &[&str], seed: u64) -> Effect {
    Effect::Send(Command::Swarm(SwarmCommand::Share {
        model: id(1),
        trackers: trackers.iter().map(|&tracker| tracker.into()).collect(),
        limit: None,
        seed,
    }))
}

fn status(peers: usize, fetches: bool) -> Event {
    let peer = PeerReport {
        link: Some(1),
        pieces: 1,
        down: 0,
        up: 0,
    };
    Event::Swarm(SwarmEvent::Status(SwarmStatus {
        model: id(1),
        name: "model-1".into(),
        trackers: Vec::new(),
        fetches,
        gives: !fetches,
        pieces: 1,
        pieces_total: 1,
        down: 0,
        up: 0,
        peers: vec![peer; peers],
    }))
}

fn link(offer: Option<&str>) -> String {
    let invite = Invite {
        id: id(1),
        name: "model-1".into(),
        sources: Vec::new(),
        trackers: vec![TRACKER.into()],
        offer: None,
    };
    let fragment = invite.to_text().unwrap();
    match offer {
        Some(code) => format!("https://app.example/#{fragment} {code}"),
        None => format!("https://app.example/#{fragment}"),
    }
}

fn receive(app: &mut App, pasted: &str) -> Vec<Effect> {
    app.act(
        NOW,
        Action::Receive {
            pasted: pasted.into(),
            gives: false,
            seed: SEED,
        },
    )
}

#[test]
fn nothing_is_shared_unasked_and_a_word_ends_it() {
    let mut app = opened(vec![summary(1)]);
    let (model, seed) = (id(1), SEED);
    assert!(app.sharing.wish(model).is_none());
    let begin = Action::Share {
        model,
        wish: wish(Some(TRACKER)),
        seed,
    };
    assert_eq!(app.act(NOW, begin), [share(&[TRACKER], SEED)]);
    let link = app.sharing.invite(model, "model-1").unwrap();
    let invite = Invite::parse(&link).unwrap();
    assert_eq!((invite.id, invite.trackers.len()), (model, 1));
    let unshare = Command::Swarm(SwarmCommand::Unshare { model });
    assert_eq!(
        app.act(NOW, Action::Unshare(model)),
        [Effect::LeavePeers(model), Effect::Send(unshare)]
    );
    assert!(app.sharing.wish(model).is_none());
}

/// By another tab, or because a person allowed it when the model came: here it can be stopped.
#[test]
fn what_is_given_without_a_wish_of_this_tab_is_shown() {
    let mut app = opened(vec![summary(1)]);
    let model = id(1);
    app.apply(NOW, status(0, true));
    assert!(app.sharing.wish(model).is_none());
    app.apply(NOW, status(0, false));
    assert_eq!(app.sharing.wish(model), Some(wish(None)));
    let unshare = Command::Swarm(SwarmCommand::Unshare { model });
    let effects = app.act(NOW, Action::Unshare(model));
    assert!(effects.contains(&Effect::Send(unshare)));
    app.apply(NOW, Event::Swarm(SwarmEvent::Ended { model }));
    assert!(app.sharing.wish(model).is_none());
}

#[test]
fn only_a_whole_model_is_shared() {
    let mut app = opened(vec![partial(1)]);
    let begin = Action::Share {
        model: id(1),
        wish: wish(None),
        seed: SEED,
    };
    assert_eq!(app.act(NOW, begin), []);
    assert!(app.sharing.wish(id(1)).is_none());
}

/// The new owner of the files is told again what this page shares, with another seed.
#[test]
fn a_new_owner_shares_what_the_old_one_did() {
    let mut app = opened(vec![summary(1)]);
    let begin = Action::Share {
        model: id(1),
        wish: wish(None),
        seed: SEED,
    };
    app.act(NOW, begin);
    app.apply(NOW, status(1, false));
    let effects = app.act(NOW, Action::LinkLost(AppError::WorkerDied));
    assert!(effects.contains(&Effect::LeaveAllPeers));
    assert!(app.sharing.room(id(1)).is_none());
    let effects = app.apply(NOW + 1, ready());
    assert!(effects.contains(&share(&[], NOW + 1)), "{effects:?}");
}

#[test]
fn a_link_begins_an_import_and_a_code_behind_it_a_connection() {
    let mut app = opened(Vec::new());
    let import = Effect::Send(Command::Import {
        import: ImportId(1),
        source: ImportSource::Invite(InvitedModel {
            id: id(1),
            name: "model-1".into(),
            sources: Vec::new(),
            trackers: vec![TRACKER.into()],
            gives: false,
            seed: SEED,
        }),
    });
    let answer = Effect::Send(Command::Swarm(SwarmCommand::Meet(Meeting::Answer {
        model: id(1),
        code: "code".into(),
    })));
    let effects = receive(&mut app, &link(Some("co\nde")));
    assert_eq!(effects, [import, answer.clone()]);
    assert_eq!(app.sharing.exchange(id(1)), Some(&Exchange::Making));
    let (model, met) = (id(1), Met::Answer("back".into()));
    app.apply(NOW, Event::Swarm(SwarmEvent::Met { model, met }));
    let code = Exchange::Answer("back".into());
    assert_eq!(app.sharing.exchange(model), Some(&code));
    // Connected, the codes have done their work.
    app.apply(NOW, status(0, true));
    app.apply(NOW, status(1, true));
    assert_eq!(app.sharing.exchange(id(1)), None);
    // A second code is one more peer of the same import.
    assert_eq!(receive(&mut app, &link(Some("code"))), [answer]);
}

/// A closed tab's transfer goes on at the next visit, where peers can be found without a person.
#[test]
fn what_a_closed_tab_left_goes_on_by_itself() {
    let invited = |trackers: Vec<String>| InvitedModel {
        id: id(1),
        name: "model-1".into(),
        sources: Vec::new(),
        trackers,
        gives: false,
        seed: SEED,
    };
    let begins = |effects: Vec<Effect>| {
        let mut effects = effects.iter();
        effects.any(|effect| matches!(effect, Effect::Send(Command::Import { .. })))
    };
    let mut app = opened(vec![partial(1)]);
    assert!(begins(
        app.act(NOW, Action::Unfinished(invited(vec![TRACKER.into()])))
    ));
    let mut app = opened(vec![partial(1)]);
    assert!(!begins(
        app.act(NOW, Action::Unfinished(invited(Vec::new())))
    ));
    // Whole by now, or thrown away.
    for models in [vec![summary(1)], Vec::new()] {
        let mut app = opened(models);
        assert!(!begins(
            app.act(NOW, Action::Unfinished(invited(vec![TRACKER.into()])))
        ));
    }
}

#[test]
fn a_link_that_is_none_is_refused_in_words() {
    let mut app = opened(Vec::new());
    for pasted in ["", "https://app.example/", "#slm1=ab", "hello code"] {
        assert_eq!(receive(&mut app, pasted), [], "{pasted}");
    }
    assert!(!app.notices.shown().is_empty());
    assert!(!app.imports.running());
}

#[test]
fn what_is_here_already_is_not_fetched() {
    let mut app = opened(vec![summary(1)]);
    let effects = receive(&mut app, &link(None));
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Send(Command::Import { .. })))
    );
}
