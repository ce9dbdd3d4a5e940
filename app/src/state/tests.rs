//! Stories of a visit, told as inputs and expected effects.
//!
//! The names in brackets are rows of the list of users' complaints that a story answers.

use format::{Digest, ModelId, Root};
use protocol::{
    CatalogueEntry, ChatAbility, Command, ErrorReport, Event, Figures, Finish, Fit, FitReport,
    ImportId, ImportPhase, ImportProgress, ImportSource, KvFormat, LaneId, LaneReport, Lever,
    Message, ModelSummary, Offered, RequestId, Residency, Role, Sampling, Short, Stage,
    StorageKind, Subject, TrResult, Wish, abi,
};

use super::*;
use crate::error::AppError;

mod answer;
mod bench;
mod import;
mod keeping;
mod sharing;
mod value;
mod visit;

const NOW: Millis = 1_764_500_000_000;

fn id(byte: u8) -> ModelId {
    ModelId {
        root: Root(Digest([byte; 32])),
        length: 1_000_000,
    }
}

fn summary(byte: u8) -> ModelSummary {
    ModelSummary {
        id: id(byte),
        name: format!("model-{byte}"),
        licence: Some("Apache-2.0".into()),
        source: "gguf".into(),
        context: 2048,
        chat: ChatAbility::Yes,
        partial: None,
        damaged: false,
        borrowed: false,
    }
}

fn partial(byte: u8) -> ModelSummary {
    ModelSummary {
        partial: Some(400_000),
        ..summary(byte)
    }
}

fn entry(byte: u8) -> CatalogueEntry {
    CatalogueEntry {
        name: format!("model-{byte}"),
        licence: Some("Apache-2.0".into()),
        root: id(byte).root,
        length: id(byte).length,
        url: "m.slm".into(),
        pieces_url: "m.slm.pieces".into(),
        others: Vec::new(),
    }
}

fn offered(models: Vec<CatalogueEntry>) -> Offered {
    Offered {
        models,
        ..Offered::default()
    }
}

fn trouble(code: TrResult) -> ErrorReport {
    ErrorReport {
        code,
        stage: Stage::Import,
        what: "What.".into(),
        remedy: "Do.".into(),
    }
}

fn lane() -> LaneReport {
    LaneReport {
        lane: LaneId::Simd128Wasm32,
        sha256: None,
        self_tests: 12,
        cross_origin_isolated: true,
    }
}

fn ready() -> Event {
    Event::Ready {
        lane: lane(),
        downgrades: Vec::new(),
        storage: StorageKind::Opfs,
    }
}

fn loaded(byte: u8) -> Event {
    let plan = abi::Plan {
        weights: 5,
        total: 5,
        limit: 10,
        context: 2048,
        ..abi::Plan::default()
    };
    let fit = Box::new(FitReport::of(&plan, None));
    Event::Loaded {
        model: summary(byte),
        fit,
    }
}

fn progress(import: u32, bytes: u64) -> Event {
    Event::Import(ImportProgress {
        import: ImportId(import),
        phase: ImportPhase::Receiving,
        bytes,
        bytes_total: 1_000_000,
        pieces: 0,
        pieces_total: 1,
    })
}

fn restored(unfinished_load: Option<ModelId>) -> Action {
    Action::Restored {
        conversations: Vec::new(),
        settings: None,
        unfinished_load,
    }
}

fn load(byte: u8) -> Effect {
    Effect::Send(Command::Load {
        model: id(byte),
        context: 0,
    })
}

/// A page that is open on these models, with nothing loaded.
fn opened(models: Vec<ModelSummary>) -> App {
    let mut app = App::default();
    app.apply(NOW, ready());
    app.act(NOW, restored(None));
    app.apply(NOW, Event::Models(models));
    app
}

/// A page with model 1 loaded.
fn chatting() -> App {
    let mut app = opened(vec![summary(1)]);
    app.apply(NOW, loaded(1));
    app
}

fn send(app: &mut App, text: &str) -> Vec<Effect> {
    app.act(
        NOW,
        Action::Send {
            text: text.into(),
            seed: 7,
        },
    )
}

fn text(app: &mut App, request: u32, text: &str) -> Vec<Effect> {
    app.apply(
        NOW,
        Event::Text {
            request: RequestId(request),
            text: text.into(),
        },
    )
}

fn done(app: &mut App, request: u32, finish: Finish) -> Vec<Effect> {
    let figures = Figures {
        prompt_tokens: 9,
        new_tokens: 3,
        decode_ms: 60.0,
        ..Figures::default()
    };
    app.apply(
        NOW,
        Event::Done {
            request: RequestId(request),
            finish,
            figures,
        },
    )
}

fn stored(byte: u8) -> App {
    let mut app = App::default();
    app.act(0, restored(None));
    app.apply(0, ready());
    app.apply(0, Event::Models(vec![summary(byte), summary(byte + 1)]));
    app
}

/// One click on a way: the wish goes first, then the load; the offer is gone.
#[test]
fn a_model_that_does_not_fit_is_loaded_in_the_way_that_was_chosen() {
    let mut app = stored(1);
    let model = summary(1).id;
    app.act(0, Action::Load(model));
    let report = match loaded(1) {
        Event::Loaded { fit, .. } => *fit,
        _ => unreachable!("made by hand"),
    };
    let wish = Wish {
        context: 512,
        kv_format: KvFormat::F16,
        residency: Residency::Paged,
    };
    let fit = Fit {
        model: Some(model),
        name: "m".into(),
        report,
        over: Some(Short {
            region: abi::REGION_WEIGHTS,
            left: 1_000_000,
            needed: 98_000_000,
        }),
        levers: vec![Lever { wish, report }],
    };
    app.apply(0, Event::Fit(Box::new(fit.clone())));
    let told = crate::text::too_much(&fit).unwrap_or_default();
    assert!(
        told.contains("98.0 MB") && told.contains("1.0 MB"),
        "{told}"
    );
    let effects = app.act(0, Action::TakeAs(wish));
    let sent: Vec<_> = effects
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Send(command) => Some(command),
            _ => None,
        })
        .collect();
    let context = 0;
    assert_eq!(
        sent,
        [Command::Prefer(wish), Command::Load { model, context }]
    );
    assert_eq!(app.fit, None);
}
