//! Words for what the engine says in numbers.

use format::Tensor;
use protocol::abi::{self, ErrorPlace};
use protocol::{Over, Stage, TrResult};
use runtime::RuntimeError;

use crate::failure::Failure;

const INSPECT: &str = "Check the model with: tinyrustlm inspect.";

/// A part of the memory plan, `REGION_...`.
pub fn region(number: u32) -> &'static str {
    match number {
        abi::REGION_WEIGHTS => "the weights",
        abi::REGION_METADATA => "the model's tables",
        abi::REGION_KV => "the keys and values",
        abi::REGION_SCRATCH => "the intermediate results",
        abi::REGION_LOGITS => "the logits",
        abi::REGION_SAMPLER => "the choice of a token",
        abi::REGION_TOKENIZER => "the tokenizer",
        abi::REGION_CONTROL | abi::REGION_STACKS => "the threads",
        abi::REGION_TRANSFER => "what passes to the engine",
        _ => "a part of the model",
    }
}

/// Decimal, as disks are sold; what is small keeps its digits.
pub fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{bytes} bytes"),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// What is too much of a plan.
pub fn too_much(over: Over) -> String {
    format!(
        "{} need {}, and {} are left",
        region(over.region),
        megabytes(over.needed),
        megabytes(over.left)
    )
}

/// An engine failure: what it concerns, what was expected and found, and what to do.
pub fn refuse(tensors: &[Tensor], error: RuntimeError) -> Failure {
    let place = error.0;
    let (expected, found) = (place.expected, place.found);
    match (error.code(), place.detail, error.stage()) {
        (TrResult::OutOfMemory, abi::DETAIL_REGION, _) => {
            let over = Over {
                region: place.item,
                left: expected,
                needed: found,
            };
            let what = format!("the model does not fit into memory: {}", too_much(over));
            Failure::Machine(format!("{what}. Ask what helps with: tinyrustlm fit."))
        }
        (TrResult::OutOfMemory, detail, _) => {
            let asked = match detail {
                abi::DETAIL_REFUSED => format!("{} for {}", megabytes(found), region(place.item)),
                _ => megabytes(found),
            };
            let what = format!("the system has no {asked}");
            Failure::Machine(format!("{what}. Ask what helps with: tinyrustlm fit."))
        }
        (TrResult::HostRead, ..) => Failure::Machine(format!(
            "the model's file cannot be read at byte {}",
            place.at
        )),
        (TrResult::ContextExceeded, _, Stage::Plan) => Failure::Usage(format!(
            "--context {found} is more than the {expected} positions that the model was made for"
        )),
        (TrResult::ContextExceeded, ..) => Failure::refused(
            format!("the prompt has {found} tokens, and there is room for {expected}"),
            "Shorten the prompt or raise --context.",
        ),
        (TrResult::InvalidArgument, abi::DETAIL_TOKEN_ID, _) => Failure::refused(
            format!("token id {found} is above the greatest one, {expected}"),
            "Give ids of this model's own tokenizer.",
        ),
        (TrResult::InvalidArgument, abi::DETAIL_POSITIONS, Stage::Prefill) => {
            Failure::refused("the prompt is empty", "Give at least one token.")
        }
        _ => Failure::refused(anything(tensors, place, error.code()), INSPECT),
    }
}

/// What has no sentence of its own.
fn anything(tensors: &[Tensor], place: ErrorPlace, code: TrResult) -> String {
    let stage = Stage::from_code(place.stage);
    let part = match (stage, tensors.get(place.item as usize)) {
        (_, _) if place.item == u32::MAX => String::new(),
        (Some(Stage::Prefill | Stage::Decode | Stage::Sample), _) => {
            format!(" in layer {}", place.item)
        }
        (_, Some(tensor)) => format!(" in tensor {}", tensor.name),
        (_, None) => String::new(),
    };
    let numbers = match place.detail {
        abi::DETAIL_NONE => String::new(),
        _ => format!(" (expected {}, found {})", place.expected, place.found),
    };
    format!(
        "the engine refused with {code:?}{part}{numbers} at {}",
        place.at
    )
}
