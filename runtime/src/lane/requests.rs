//! A request as the host writes it.

use protocol::abi::{
    self, DETAIL_CODE, FLAG_COLD, FLAG_DIGEST, FLAG_IGNORE_EOS, FLAG_MASK_MALFORMED,
};
use protocol::{Stage, TrResult};

use crate::sampler::{Malformed, Settings};
use crate::{Request, RuntimeError};

const FLAGS: u32 = FLAG_IGNORE_EOS | FLAG_DIGEST | FLAG_MASK_MALFORMED | FLAG_COLD;

pub fn native_request<'a>(
    request: &abi::Request,
    ids: &'a [u32],
) -> Result<Request<'a>, RuntimeError> {
    let unknown = request.flags & !FLAGS;
    if unknown != 0 || request.reserved != 0 {
        let error = RuntimeError::new(TrResult::InvalidArgument, Stage::Prefill);
        return Err(error.detail(DETAIL_CODE, u64::from(FLAGS), u64::from(request.flags)));
    }
    let has = |flag| request.flags & flag != 0;
    Ok(Request {
        ids,
        max_new: request.max_new,
        sampling: Settings {
            temperature: request.temperature,
            top_k: request.top_k,
            top_p: request.top_p,
            min_p: request.min_p,
            repetition_penalty: request.repetition_penalty,
            presence_penalty: request.presence_penalty,
            frequency_penalty: request.frequency_penalty,
            seed: request.seed,
            stream: request.stream,
            vocab: request.vocab,
            malformed: match has(FLAG_MASK_MALFORMED) {
                true => Malformed::Mask,
                false => Malformed::Refuse,
            },
        },
        ignore_eos: has(FLAG_IGNORE_EOS),
        digest: has(FLAG_DIGEST),
        cold: has(FLAG_COLD),
        argmax: false,
        number: request.number,
    })
}
