//! From the first visit to a later one, and through failures.

use super::*;

#[test]
fn a_first_visit_ends_in_a_chat() {
    let mut app = App::default();
    assert_eq!(app.phase(), Phase::Starting);
    let asked = app.apply(NOW, ready());
    assert_eq!(
        asked,
        [
            Effect::Send(Command::ListModels),
            Effect::Send(Command::Catalogue { newest: 0 })
        ]
    );
    assert_eq!(app.act(NOW, restored(None)), []);
    assert_eq!(app.phase(), Phase::Starting, "the store has not answered");
    assert_eq!(app.apply(NOW, Event::Models(Vec::new())), []);
    app.apply(NOW, Event::Catalogue(offered(vec![entry(1)])));
    assert_eq!(app.phase(), Phase::Empty);
    assert!(app.first_visit());

    let offer = app.library.first_offer().unwrap().clone();
    let source = ImportSource::Catalogue(entry(1));
    let begun = app.act(NOW, Action::Get(offer));
    assert_eq!(
        begun,
        [Effect::Send(Command::Import {
            import: ImportId(1),
            source
        })]
    );
    assert_eq!(app.phase(), Phase::Importing);
    app.apply(NOW, progress(1, 250_000));
    app.apply(NOW + 1000, progress(1, 500_000));
    let import = app.imports.current().unwrap();
    assert_eq!(import.pace.bytes_per_second(), Some(250_000));
    assert_eq!(import.pace.seconds_left(1_000_000), Some(2));

    let imported = Event::Imported {
        import: ImportId(1),
        model: summary(1),
        already_here: false,
    };
    let mark = Effect::MarkLoad(Some(id(1)));
    assert_eq!(
        app.apply(NOW, imported),
        [Effect::SaveNotes, Effect::AskToPersist, mark, load(1)]
    );
    assert_eq!(app.phase(), Phase::Loading);
    let open = [
        Effect::MarkLoad(None),
        Effect::SaveSettings,
        Effect::SaveNotes,
        Effect::OpenChat,
    ];
    assert_eq!(app.apply(NOW, loaded(1)), open);
    assert_eq!(app.phase(), Phase::Ready);
    assert!(app.can_send() && !app.first_visit());
}

/// D17: a later visit, offline, needs the store alone.
#[test]
fn a_later_visit_loads_what_was_used_last() {
    let settings = Settings {
        last_model: Some(id(2)),
        ..Settings::default()
    };
    let restored = Action::Restored {
        conversations: Vec::new(),
        settings: Some(settings),
        unfinished_load: None,
    };
    let mut app = App::default();
    app.apply(NOW, ready());
    let error = trouble(TrResult::Source);
    app.apply(
        NOW,
        Event::Failed {
            subject: Subject::Catalogue,
            error,
        },
    );
    assert!(
        app.notices.shown().is_empty(),
        "being offline is not a failure"
    );
    app.apply(NOW, Event::Models(vec![summary(1), summary(2)]));
    let effects = app.act(NOW, restored);
    assert_eq!(effects, [Effect::MarkLoad(Some(id(2))), load(2)]);
    app.apply(NOW, loaded(2));
    assert_eq!(
        app.apply(NOW, Event::Models(vec![summary(1), summary(2)])),
        [],
        "once"
    );
}

#[test]
fn which_model_is_chosen() {
    let bare = ModelSummary {
        chat: ChatAbility::NoTokenizer,
        ..summary(3)
    };
    let cases = [
        (vec![], None, None),
        (vec![summary(1)], None, Some(id(1))),
        (vec![summary(1), summary(2)], None, None),
        (vec![summary(1), summary(2)], Some(id(2)), Some(id(2))),
        (vec![summary(1), partial(2)], Some(id(2)), Some(id(1))),
        (vec![summary(1), bare.clone()], None, Some(id(1))),
        (vec![bare.clone()], None, None),
        (vec![bare], Some(id(3)), Some(id(3))),
    ];
    for (models, last, expected) in cases {
        let mut library = Library::default();
        library.list(models.clone());
        assert_eq!(library.choose(last), expected, "{models:?} {last:?}");
    }
}

/// M2 and M3: a load that took the page down is not repeated by itself.
#[test]
fn a_deadly_load_is_not_repeated() {
    let mut app = App::default();
    app.apply(NOW, ready());
    app.apply(NOW, Event::Models(vec![summary(1)]));
    assert_eq!(
        app.act(NOW, restored(Some(id(1)))),
        [Effect::MarkLoad(None)]
    );
    assert_eq!(app.phase(), Phase::Empty);
    assert_eq!(app.died, Some(id(1)), "a person is told");
    assert_eq!(
        app.act(NOW, Action::Load(id(1)))[1],
        load(1),
        "but it can be asked for"
    );

    // The same when only the worker dies.
    assert_eq!(
        app.act(NOW, Action::LinkLost(AppError::WorkerDied)),
        [Effect::MarkLoad(None), Effect::StartWorker]
    );
    app.apply(NOW, ready());
    assert_eq!(
        app.apply(NOW, Event::Models(vec![summary(1)])),
        [Effect::MarkLoad(None)]
    );
}

/// M5 and R7: the worker dies in the middle of an answer; the conversation stays.
#[test]
fn a_dead_worker_loses_no_words() {
    let mut app = chatting();
    send(&mut app, "Hi");
    text(&mut app, 1, "Par");
    let effects = app.act(NOW, Action::LinkLost(AppError::WorkerDied));
    assert!(effects.contains(&Effect::SaveConversation(ConversationId(NOW))));
    assert_eq!(effects.last(), Some(&Effect::StartWorker));
    let turn = &app.chat.current().unwrap().turns[1];
    assert_eq!(turn.text, "Par");
    assert_eq!(turn.end.as_ref().unwrap().end, End::Interrupted);

    assert_eq!(app.phase(), Phase::Starting);
    app.apply(NOW, ready());
    let loads = app.apply(NOW, Event::Models(vec![summary(1)]));
    assert_eq!(loads[1], load(1));
}

#[test]
fn a_model_that_does_not_fit_leaves_a_reason() {
    let mut app = opened(vec![summary(1), summary(2)]);
    app.act(NOW, Action::Load(id(1)));
    assert_eq!(app.phase(), Phase::Loading);
    let error = trouble(TrResult::OutOfMemory);
    let failed = Event::Failed {
        subject: Subject::Load(id(1)),
        error,
    };
    assert_eq!(app.apply(NOW, failed), [Effect::MarkLoad(None)]);
    assert_eq!(app.phase(), Phase::Failed);
    app.act(NOW, Action::Load(id(2)));
    assert_eq!(app.phase(), Phase::Loading);
}

/// Where the ways in which it would fit are shown, they are the whole message.
#[test]
fn what_does_not_fit_is_told_once() {
    for has_fit in [false, true] {
        let mut app = opened(vec![summary(1)]);
        app.act(NOW, Action::Load(id(1)));
        if has_fit {
            let fit = protocol::Fit {
                model: Some(id(1)),
                name: "model-1".into(),
                report: protocol::FitReport::of(&Default::default(), None),
                over: Some(protocol::Short {
                    region: 0,
                    left: 1,
                    needed: 2,
                }),
                levers: Vec::new(),
            };
            app.apply(NOW, Event::Fit(Box::new(fit)));
        }
        let error = ErrorReport {
            stage: protocol::Stage::Plan,
            ..trouble(TrResult::OutOfMemory)
        };
        let subject = Subject::Load(id(1));
        app.apply(NOW, Event::Failed { subject, error });
        assert_eq!(app.notices.shown().len(), usize::from(!has_fit));
        assert_eq!(app.phase(), Phase::Failed);
        // Any other failure is told in any case.
        let error = trouble(TrResult::Storage);
        app.apply(NOW, Event::Failed { subject, error });
        assert_eq!(app.notices.shown().len(), 1 + usize::from(!has_fit));
    }
}

#[test]
fn deleting_the_loaded_model_unloads_it_first() {
    let mut app = chatting();
    let effects = app.act(NOW, Action::Delete(id(1)));
    let delete = Effect::Send(Command::DeleteModel { model: id(1) });
    let unload = Effect::Send(Command::Unload);
    assert_eq!(effects, [unload, delete, Effect::SaveNotes]);
    assert_eq!(app.phase(), Phase::Empty);
}
