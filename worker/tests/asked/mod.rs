//! Every command, and what counts as an answer to it.

#![allow(dead_code)]

use format::ModelId;
use protocol::{
    Command, Event, ImportId, ImportSource, KvFormat, Measure, Mode, RequestId, Residency,
    Sampling, SwarmCommand, SwarmEvent, TrResult, Wish,
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
        reuses: false,
    }
}

/// Every command, some of them with what is there and with what is not.
pub fn commands(model: ModelId) -> Vec<(&'static str, Command)> {
    let mut all = of_imports();
    all.extend(of_stored_models(model));
    all.extend(of_requests());
    all.extend(of_the_rest(model));
    all.extend(of_sharing(model));
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
        ("prefer", Command::Prefer(wish())),
        (
            "forget what is kept",
            Command::ForgetKept { conversation: None },
        ),
        (
            "forget what was never kept",
            Command::ForgetKept {
                conversation: Some(900),
            },
        ),
    ]
}

/// Not the usual way to load, and with the usual bits.
pub fn wish() -> Wish {
    Wish {
        context: 64,
        kv_format: KvFormat::F16,
        residency: Residency::Paged,
    }
}

fn of_sharing(model: ModelId) -> Vec<(&'static str, Command)> {
    let share = |model| SwarmCommand::Share {
        model,
        trackers: Vec::new(),
        limit: None,
        seed: 7,
    };
    let link = 900;
    let key = [1; 20];
    let all = [
        ("share", share(model)),
        ("share nothing", share(nowhere(model))),
        ("share no more", SwarmCommand::Unshare { model }),
        ("met a peer", SwarmCommand::Opened { model, link, key }),
        ("lost a peer", SwarmCommand::Closed { link }),
        ("sent to a peer", SwarmCommand::Drained { link, bytes: 1 }),
    ];
    all.map(|(name, command)| (name, Command::Swarm(command)))
        .into()
}

/// The page only says how things stand; if that is no mistake nobody answers.
pub fn is_a_report(command: &Command) -> bool {
    match command {
        Command::Prefer(_) => true,
        Command::Swarm(command) => matches!(
            command,
            SwarmCommand::Closed { .. } | SwarmCommand::Drained { .. }
        ),
        _ => false,
    }
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
        (Command::ForgetKept { .. }, Event::Kept { .. }) => true,
        (Command::Swarm(command), Event::Swarm(event)) => return answer_of_swarm(command, event),
        _ => false,
    };
    done.then_some(true)
}

fn answer_of_swarm(command: &SwarmCommand, event: &SwarmEvent) -> Option<bool> {
    match (command, event) {
        (SwarmCommand::Share { model, .. }, SwarmEvent::Status(status)) => {
            (status.model == *model && status.gives).then_some(true)
        }
        (SwarmCommand::Unshare { model: of }, SwarmEvent::Ended { model }) => {
            (model == of).then_some(true)
        }
        // Whoever speaks of a model that is not shared is sent away.
        (SwarmCommand::Opened { link: of, .. }, SwarmEvent::Close { link, .. }) => {
            (link == of).then_some(false)
        }
        _ => None,
    }
}
