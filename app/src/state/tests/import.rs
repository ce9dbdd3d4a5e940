//! Models on their way in.

use super::*;

/// D18: cancel; D1 and D19: what was verified is offered again, from the store's own word.
#[test]
fn a_cancelled_fetch_goes_on_or_is_thrown_away() {
    let mut app = opened(Vec::new());
    app.act(NOW, Action::Get(entry(1)));
    app.apply(NOW, progress(1, 400_000));
    let cancel = Command::CancelImport {
        import: ImportId(1),
        discard: false,
    };
    assert_eq!(app.act(NOW, Action::CancelImport), [Effect::Send(cancel)]);
    assert_eq!(app.act(NOW, Action::CancelImport), [], "asked once");
    app.apply(
        NOW,
        Event::ImportCancelled {
            import: ImportId(1),
        },
    );
    assert_eq!(app.phase(), Phase::Empty);
    let stopped = app.imports.current().unwrap();
    assert_eq!(
        (stopped.state, stopped.kept()),
        (ImportState::Stopped, 400_000)
    );
    app.apply(NOW, Event::Models(vec![partial(1)]));
    assert!(app.first_visit(), "half a model is no model");

    let mut discarding = app.clone();
    let delete = Effect::Send(Command::DeleteModel { model: id(1) });
    assert_eq!(discarding.act(NOW, Action::DiscardImport), [delete]);
    assert!(discarding.imports.current().is_none());

    let source = ImportSource::Catalogue(entry(1));
    let go_on = Effect::Send(Command::Import {
        import: ImportId(2),
        source,
    });
    assert_eq!(app.act(NOW, Action::ContinueImport), [go_on]);
    app.apply(NOW, progress(1, 999_999));
    assert_eq!(
        app.imports.current().unwrap().progress,
        None,
        "a late word of the old one"
    );
}

#[test]
fn a_cancelled_file_is_let_go() {
    let mut app = opened(Vec::new());
    app.act(
        NOW,
        Action::ImportFile {
            name: "a.gguf".into(),
            length: 5,
        },
    );
    let cancel = Command::CancelImport {
        import: ImportId(1),
        discard: true,
    };
    assert_eq!(app.act(NOW, Action::CancelImport), [Effect::Send(cancel)]);
    app.apply(
        NOW,
        Event::ImportCancelled {
            import: ImportId(1),
        },
    );
    assert!(app.imports.current().is_none());
}

#[test]
fn one_import_at_a_time() {
    let mut app = opened(Vec::new());
    app.act(NOW, Action::Get(entry(1)));
    assert_eq!(
        app.act(
            NOW,
            Action::ImportFile {
                name: "b".into(),
                length: 5
            }
        ),
        []
    );
    let expected = crate::text::report(&AppError::ImportBusy);
    assert_eq!(app.notices.shown()[0].report, expected);
    assert_eq!(app.imports.current().unwrap().name, "model-1");
}

/// D7 and D8: the refusal is shown, and another file can be tried.
#[test]
fn a_refused_file_leaves_the_page_usable() {
    let mut app = opened(Vec::new());
    app.act(
        NOW,
        Action::ImportFile {
            name: "index.html".into(),
            length: 5,
        },
    );
    let error = trouble(TrResult::InvalidModel);
    let subject = Subject::Import(ImportId(1));
    app.apply(
        NOW,
        Event::Failed {
            subject,
            error: error.clone(),
        },
    );
    assert_eq!(app.phase(), Phase::Empty);
    assert_eq!(app.notices.shown()[0].report, error);
    let next = app.act(
        NOW,
        Action::ImportFile {
            name: "b".into(),
            length: 5,
        },
    );
    assert_eq!(next.len(), 1);
}

#[test]
fn a_file_dropped_early_waits_for_the_worker() {
    let mut app = App::default();
    assert_eq!(
        app.act(
            NOW,
            Action::ImportFile {
                name: "a".into(),
                length: 5
            }
        ),
        []
    );
    let source = ImportSource::File {
        name: "a".into(),
        length: 5,
    };
    let import = Effect::Send(Command::Import {
        import: ImportId(1),
        source,
    });
    assert_eq!(app.apply(NOW, ready())[2], import);
    assert_eq!(app.apply(NOW, ready()).len(), 2, "once");
}
