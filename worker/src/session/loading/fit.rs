//! Whether a model fits, and what helps if it does not: said from the header alone.

use format::{Header, ModelId};
use protocol::abi::{MODE_INT8_V1, Options, Plan};
use protocol::{Fit, FitReport, Short, Wish, most_room, ways_to_fit};

use super::seat::CONTEXT_DEFAULT;
use crate::engine::{Engine, EngineError};

/// The engine's options for a wish with this much room.
pub fn options_for(wish: Wish, context: u32) -> Options {
    Options {
        mode: MODE_INT8_V1,
        kv_format: wish.kv_format.code(),
        context,
        residency: wish.residency.code(),
        ..Options::default()
    }
}

/// A verdict, and how to open the model if it fits.
pub struct Verdict {
    pub fit: Fit,
    pub chosen: Result<(Options, Plan), EngineError>,
}

/// Asks the engine for one plan after another. Fails only where there is no plan at all, as with a
/// context that the model does not have.
pub fn judge<E: Engine>(
    engine: &mut E,
    header: &Header,
    bytes: &[u8],
    wish: Wish,
    model: Option<ModelId>,
) -> Result<Verdict, EngineError> {
    let mut measure = |wish: Wish| {
        let options = options_for(wish, wish.context);
        engine.measure(bytes, header.file_len, &options)
    };
    let name = header.manifest.name.clone();
    // Fewer positions than the usual are taken without a word, but not fewer than were asked for.
    let (asked, plan) = match wish.context {
        0 => {
            let context = header.manifest.architecture.context.min(CONTEXT_DEFAULT);
            let asked = Wish { context, ..wish };
            (asked, most_room(asked, E::BLOCK_BYTES_MAX, &mut measure)?)
        }
        _ => (wish, measure(wish)?),
    };
    let report = FitReport::of(&plan, None);
    let Some(over) = plan.over(E::BLOCK_BYTES_MAX) else {
        let fit = Fit {
            model,
            name,
            report,
            over: None,
            levers: Vec::new(),
        };
        let chosen = Ok((options_for(wish, plan.context), plan));
        return Ok(Verdict { fit, chosen });
    };
    let fit = Fit {
        model,
        name,
        report,
        over: Some(Short {
            region: over.region,
            left: over.left,
            needed: over.needed,
        }),
        levers: ways_to_fit(asked, E::BLOCK_BYTES_MAX, measure)?,
    };
    let chosen = Err(EngineError::short(over));
    Ok(Verdict { fit, chosen })
}
