//! Models that the browser removes, and how often they were used.

use super::*;

fn listed(app: &mut App, bytes: &[u8]) -> Vec<Effect> {
    let models = bytes.iter().map(|byte| summary(*byte)).collect();
    app.apply(NOW, Event::Models(models))
}

fn started(storage: StorageKind) -> App {
    let mut app = App::default();
    app.apply(
        NOW,
        Event::Ready {
            lane: lane(),
            downgrades: Vec::new(),
            storage,
        },
    );
    app
}

#[test]
fn a_model_that_the_browser_removed_is_told_once() {
    let mut app = started(StorageKind::Opfs);
    // The first list is noted, and nothing is missed.
    assert!(listed(&mut app, &[1, 2]).contains(&Effect::SaveNotes));
    assert_eq!(app.notices.shown().len(), 0);
    let effects = listed(&mut app, &[2]);
    assert!(effects.contains(&Effect::SaveNotes));
    let told = app.notices.shown().to_vec();
    assert_eq!(told.len(), 1);
    let what = &told[0].report.what;
    assert!(
        what.contains("has removed") && what.contains("model-1"),
        "{what}"
    );
    assert!(
        what.contains("1.0 MB") && !what.contains("model-2"),
        "{what}"
    );
    app.notices.clear();
    listed(&mut app, &[2]);
    assert_eq!(app.notices.shown().len(), 0);
}

#[test]
fn what_a_person_deletes_is_not_missed() {
    let mut app = started(StorageKind::Opfs);
    listed(&mut app, &[1, 2]);
    app.act(NOW, Action::Delete(id(1)));
    listed(&mut app, &[2]);
    assert_eq!(app.notices.shown().len(), 0);
}

/// A private window has another storage, in which nothing was ever kept.
#[test]
fn another_storage_misses_nothing() {
    let mut app = started(StorageKind::Opfs);
    listed(&mut app, &[1]);
    let notes = app.notes.clone();
    for kind in [StorageKind::Memory, StorageKind::IndexedDb] {
        let mut other = started(kind);
        other.notes = notes.clone();
        listed(&mut other, &[]);
        assert_eq!(other.notices.shown().len(), 0, "{kind:?}");
    }
}

#[test]
fn models_are_proposed_by_when_they_were_used() {
    let mut notes = Notes::default();
    let models = [summary(1), summary(2), summary(3)];
    notes.used(NOW, &models[0]);
    notes.used(NOW - 5, &models[2]);
    let order: Vec<ModelId> = notes.by_use(&models).iter().map(|model| model.id).collect();
    assert_eq!(order, [id(2), id(3), id(1)]);
}

#[test]
fn an_older_catalogue_is_not_taken_for_a_newer_one() {
    let mut app = started(StorageKind::Opfs);
    let offered = |number| Offered {
        models: vec![entry(1)],
        number: Some(number),
        refused: None,
    };
    let effects = app.apply(NOW, Event::Catalogue(offered(4)));
    assert_eq!(effects, [Effect::SaveNotes]);
    assert_eq!(app.apply(NOW, Event::Catalogue(offered(4))), []);
    assert_eq!(app.notes.catalogue, 4);
    // The next start tells the worker what it may not go below.
    let ready = Event::Ready {
        lane: lane(),
        downgrades: Vec::new(),
        storage: StorageKind::Opfs,
    };
    let effects = app.apply(NOW, ready);
    let newest = 4;
    assert!(effects.contains(&Effect::Send(Command::Catalogue { newest })));
    // A refused list is told, and the server's own offers stand.
    let offered = Offered {
        models: vec![entry(1)],
        number: None,
        refused: Some(trouble(TrResult::Source)),
    };
    app.apply(NOW, Event::Catalogue(offered));
    assert_eq!(app.notices.shown().len(), 1);
    assert!(app.library.entry(id(1)).is_some());
}

#[test]
fn a_damaged_model_is_not_loaded_by_itself_and_can_be_got_again() {
    let mut app = started(StorageKind::Opfs);
    let damaged = ModelSummary {
        damaged: true,
        ..summary(1)
    };
    app.apply(NOW, Event::Models(vec![damaged]));
    assert!(!app.library.complete(id(1)));
    let effects = app.act(NOW, Action::Get(entry(1)));
    let import = |effect: &Effect| matches!(effect, Effect::Send(Command::Import { .. }));
    assert!(effects.iter().any(import), "{effects:?}");
}
