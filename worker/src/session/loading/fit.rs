//! Whether a model fits, and what helps if it does not: said from the header alone.

use format::{Header, ModelId};
use protocol::abi::{MODE_INT8_V1, Options, Plan};
use protocol::{Fit, FitReport, KvFormat, Lever, Residency, Short, Wish};

use super::seat::{CONTEXT_DEFAULT, CONTEXT_LEAST};
use crate::engine::{Engine, EngineError};

/// What may be changed about a load, each alone before all together, and the milder first:
/// rounding keys and values costs a little quality and no speed, the rest only speed.
const LEVERS: [(KvFormat, Residency); 4] = [
    (KvFormat::Int8, Residency::Full),
    (KvFormat::F16, Residency::Hybrid),
    (KvFormat::F16, Residency::Paged),
    (KvFormat::Int8, Residency::Paged),
];

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
    let mut asker = Asker {
        engine,
        header,
        bytes,
    };
    let name = header.manifest.name.clone();
    let (options, plan) = asker.best(wish)?;
    let report = FitReport::of(&plan, None);
    let Some(over) = plan.over(E::BLOCK_BYTES_MAX) else {
        let fit = Fit {
            model,
            name,
            report,
            over: None,
            levers: Vec::new(),
        };
        let chosen = Ok((options, plan));
        return Ok(Verdict { fit, chosen });
    };
    let mut levers = asker.levers(wish)?;
    if wish.context != 0 {
        let shorter = Wish { context: 0, ..wish };
        let found = asker.lever(shorter)?;
        levers.splice(0..0, found);
    }
    let fit = Fit {
        model,
        name,
        report,
        over: Some(Short {
            region: over.region,
            left: over.left,
            needed: over.needed,
        }),
        levers,
    };
    let chosen = Err(EngineError::short(over));
    Ok(Verdict { fit, chosen })
}

struct Asker<'a, E> {
    engine: &'a mut E,
    header: &'a Header,
    bytes: &'a [u8],
}

impl<E: Engine> Asker<'_, E> {
    /// The wish with the most room of the usual ones that fits, or else with the least.
    fn best(&mut self, wish: Wish) -> Result<(Options, Plan), EngineError> {
        let mut context = match wish.context {
            0 => self
                .header
                .manifest
                .architecture
                .context
                .min(CONTEXT_DEFAULT),
            context => context,
        };
        loop {
            let options = options_for(wish, context);
            let plan = self
                .engine
                .measure(self.bytes, self.header.file_len, &options)?;
            let fits = plan.over(E::BLOCK_BYTES_MAX).is_none();
            if fits || wish.context != 0 || context / 2 < CONTEXT_LEAST {
                return Ok((options, plan));
            }
            context /= 2;
        }
    }

    fn lever(&mut self, wish: Wish) -> Result<Option<Lever>, EngineError> {
        let (_, plan) = self.best(wish)?;
        let fits = plan.over(E::BLOCK_BYTES_MAX).is_none();
        Ok(fits.then(|| Lever {
            wish: Wish {
                context: plan.context,
                ..wish
            },
            report: FitReport::of(&plan, None),
        }))
    }

    fn levers(&mut self, asked: Wish) -> Result<Vec<Lever>, EngineError> {
        let mut levers: Vec<Lever> = Vec::new();
        for (kv_format, residency) in LEVERS {
            let wish = Wish {
                context: 0,
                kv_format,
                residency,
            };
            let is_both = kv_format == KvFormat::Int8 && residency == Residency::Paged;
            if wish == asked || (is_both && !levers.is_empty()) {
                continue;
            }
            levers.extend(self.lever(wish)?);
        }
        Ok(levers)
    }
}
