//! The real model (SmolLM2-135M-Instruct, Q4_1) gives the same bits on every kind of processor.
//!
//! The hash was taken from the scalar kernels on x86-64; `golden_smollm2` checks what they compute
//! against PyTorch. It is short, because it also runs in an emulator.

#![allow(clippy::unwrap_used)]

mod golden;
mod models;

use models::{INT8, engine, greedy, open, run};
use runtime::{Kernels, KvFormat, Options};

const PROMPT: [u32; 6] = [1, 9690, 198, 2683, 359, 253];
const NEW: u32 = 3;
/// With a cache in 16 bits, and in 8.
const DIGESTS: [(KvFormat, &str); 2] = [
    (
        KvFormat::F16,
        "db49b2a45168ba6d5bd4a23d606ca9b4e9e1e87066f0ca91f54c8a6e5b0e3866",
    ),
    (
        KvFormat::Int8,
        "1bd562b4b9ba232564e4ac54a3953603ab7ca309131ddbe915b452ef862ff867",
    ),
];

#[test]
fn the_real_model_gives_the_known_bits() {
    let (header, file) = golden::real_model();
    for (kv_format, digest) in DIGESTS {
        let options = Options {
            context: 32,
            kv_format,
            ..INT8
        };
        for kernels in [Kernels::SCALAR, Kernels::best()] {
            let mut model = open(&header, &file, options, engine(kernels, 1));
            let request = greedy(&model, &PROMPT, NEW);
            let found = run(&mut model, request);
            assert_eq!(found.digest.to_string(), digest, "{}", kernels.name());
        }
    }
}
