//! Every command, and what counts as an answer to it.

#![allow(dead_code)]

use format::ModelId;
use protocol::{
    Command, Event, ImportId, ImportSource, Measure, Mode, RequestId, Sampling, TrResult,
};

use crate::world::models::small;

/// Numbers that are never in use.
pub const NO_IMPORT: ImportId = ImportId(900);
pub const NO_REQUEST: RequestId = RequestId(900);
/// Numbers that are in use where the state has something under way.
pub const IMPORT: ImportId = ImportId(1);
pub const REQUEST: RequestId = RequestId(1);

pub fn measure() -> Measure {
    Measure {
        prompt_ids: (3..9).collect(),
        max_new: 3,
        prefill_tile: 0,
        mode: Mode::Int8V1,
    }
}

/// Every command, some of them with what is there and with what is not.
pub fn commands(model: ModelId) -> Vec<(&'static str, Command)> {
    let mut all = of_imports();
    all.extend(of_stored_models(model));
    all.extend(of_requests());
    all.extend(of_the_rest(model));
    all
}

fn nowhere(model: ModelId) -> ModelId {
    ModelId { length: 1, ..model }
}

fn of_imports() -> Vec<(&'static str, Command)> {
    let import = ImportId(800);
    let again = || ImportSource::Catalogue(small().entry());
    vec![
        ("catalogue", Command::Catalogue { newest: 0 }),
        ("list", Command::ListModels),
        (
            "import",
            Command::Import {
                import,
                source: again(),
            },
        ),
        (
            "import a number in use",
            Command::Import {
                import: IMPORT,
                source: again(),
            },
        ),
        (
            "import a file that did not come",
            Command::Import {
                import,
                source: ImportSource::File {
                    name: "a.slm".into(),
                    length: 5,
                },
            },
        ),
        (
            "import an address",
            Command::Import {
                import,
                source: ImportSource::Address {
                    url: "https://nowhere.example/a.slm".into(),
                },
            },
        ),
        (
            "stop an import",
            Command::CancelImport {
                import: IMPORT,
                discard: true,
            },
        ),
        (
            "stop no import",
            Command::CancelImport {
                import: NO_IMPORT,
                discard: false,
            },
        ),
    ]
}

fn of_stored_models(model: ModelId) -> Vec<(&'static str, Command)> {
    let nowhere = nowhere(model);
    vec![
        ("delete", Command::DeleteModel { model }),
        (
            "delete nothing",
            Command::DeleteModel {
                model: ModelId {
                    root: Default::default(),
                    length: 1,
                },
            },
        ),
        ("load", Command::Load { model, context: 0 }),
        (
            "load nothing",
            Command::Load {
                model: nowhere,
                context: 0,
            },
        ),
    ]
}

fn of_requests() -> Vec<(&'static str, Command)> {
    let request = RequestId(800);
    let measure = measure();
    vec![
        ("unload", Command::Unload),
        (
            "chat",
            Command::Chat {
                request,
                messages: Vec::new(),
                sampling: Sampling::GREEDY,
                kept_as: None,
            },
        ),
        (
            "measure",
            Command::Measure {
                request,
                measure: measure.clone(),
            },
        ),
        (
            "time",
            Command::Time {
                request,
                measure: measure.clone(),
            },
        ),
        (
            "measure a number in use",
            Command::Measure {
                request: REQUEST,
                measure,
            },
        ),
        ("stop", Command::Stop { request: REQUEST }),
        (
            "stop nothing",
            Command::Stop {
                request: NO_REQUEST,
            },
        ),
    ]
}

fn of_the_rest(model: ModelId) -> Vec<(&'static str, Command)> {
    let nowhere = nowhere(model);
    vec![
        ("diagnostics", Command::Diagnostics),
        ("forget failures", Command::ForgetFailures),
        ("export", Command::Export { model }),
        ("export nothing", Command::Export { model: nowhere }),
        ("take over", Command::TakeOver),
        ("check", Command::Check { model }),
        ("check nothing", Command::Check { model: nowhere }),
    ]
}

/// Whether this event answers the command: `Some(true)` it was done, `Some(false)` it was refused.
pub fn answer(command: &Command, event: &Event) -> Option<bool> {
    if let Event::Failed { subject, error } = event {
        // A refusal that a person can do something with.
        assert!(error.code != TrResult::Ok && error.what.len() > 10 && error.remedy.len() > 10);
        return (*subject == command.subject()).then_some(false);
    }
    let done = match (command, event) {
        (Command::Catalogue { .. }, Event::Catalogue(_)) => true,
        (Command::ListModels, Event::Models(_)) => true,
        (Command::DeleteModel { model }, Event::Models(there)) => {
            there.iter().all(|stored| stored.id != *model)
        }
        (
            Command::Import { import: of, .. } | Command::CancelImport { import: of, .. },
            Event::Imported { import, .. } | Event::ImportCancelled { import },
        ) => import == of,
        (Command::Load { model: of, .. }, Event::Loaded { model, .. }) => model.id == *of,
        (Command::Unload, Event::Unloaded) => true,
        (
            Command::Chat { request: of, .. }
            | Command::Measure { request: of, .. }
            | Command::Time { request: of, .. }
            | Command::Stop { request: of },
            Event::Done { request, .. } | Event::Measured { request, .. },
        ) => request == of,
        (Command::Diagnostics, Event::Diagnostics(_)) => true,
        (Command::ForgetFailures, Event::FailuresForgotten) => true,
        (Command::Check { model: of }, Event::Checked { model, .. }) => model == of,
        _ => false,
    };
    done.then_some(true)
}
