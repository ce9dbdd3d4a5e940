//! Stories of a visit, told as inputs and expected effects.
//!
//! The names in brackets are rows of the list of users' complaints that a story answers.

use format::{Digest, ModelId, Root};
use protocol::{
    CatalogueEntry, ChatAbility, Command, ErrorReport, Event, Figures, Finish, FitReport, ImportId,
    ImportPhase, ImportProgress, ImportSource, LaneId, LaneReport, Message, ModelSummary, Offered,
    RequestId, Role, Sampling, Stage, StorageKind, Subject, TrResult,
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
    let fit = FitReport {
        weights: 1,
        metadata: 1,
        kv: 1,
        scratch: 1,
        logits: 1,
        total: 5,
        limit: 10,
        context: 2048,
    };
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
