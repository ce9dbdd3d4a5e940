//! Every instruction set against `scalar`, bit for bit, and `scalar` against itself on other
//! machines.
//!
//! A case computes the same thing with the given kernels and with [`Kernels::SCALAR`], and folds
//! the bits of all results into a number that stands in [`CASES`]. So one run shows that vectors
//! and scalars agree, and that this build agrees with every other build that passes.
//!
//! Runs natively as tests, and inside a Wasm engine through `suite_exports`.

mod attention;
mod by_hand;
mod edges;
mod hashes;
pub(crate) mod operands;
mod paged;
mod products;
mod routing;
mod vectors;

use super::Kernels;

pub struct Case {
    pub name: &'static str,
    /// Digest of the results, or what differed.
    run: fn(Kernels) -> Result<u64, &'static str>,
    digest: u64,
}

/// `digest` was taken from the scalar code on x86-64.
pub const CASES: &[Case] = &[
    case(
        "products: q8_0, int8",
        products::q8_0_int8,
        0x2b91_823e_7a5c_7561,
    ),
    case(
        "products: q4_0, int8",
        products::q4_0_int8,
        0x1d18_0214_860e_7cd1,
    ),
    case(
        "products: q4_1, int8",
        products::q4_1_int8,
        0x4a00_2ac7_ac34_b6c5,
    ),
    case(
        "products: q8_0, strict",
        products::q8_0_strict,
        0x032f_d177_74a1_df7e,
    ),
    case(
        "products: q4_0, strict",
        products::q4_0_strict,
        0x7e54_2229_2bdf_8370,
    ),
    case(
        "products: q4_1, strict",
        products::q4_1_strict,
        0xa776_001d_8f58_acbf,
    ),
    case("products: f32", products::f32, 0x2e3a_1cb1_fa52_4433),
    case("products: f16", products::f16, 0x8627_b982_ddf5_7a6e),
    case("products: bf16", products::bf16, 0x8f14_8fa0_6b3f_c9d4),
    case(
        "products: extreme operands",
        products::extremes,
        0x1474_0dfe_2dff_0e49,
    ),
    case(
        "products: parts make the whole",
        products::parts,
        0x4de2_abb4_fa5f_a29b,
    ),
    case(
        "products: a token's sums do not depend on its batch",
        products::batches,
        0xbf5d_2f41_dd4d_1ce1,
    ),
    case(
        "products: rows longer than what is packed at a time",
        products::long_rows,
        0,
    ),
    case("products: one token", products::one_token, 0),
    case(
        "attention: f32 cache",
        attention::f32,
        0xf386_a078_7630_9b4e,
    ),
    case(
        "attention: f16 cache",
        attention::f16,
        0x071f_f543_fdd0_6857,
    ),
    case(
        "attention: positions together",
        attention::together,
        0xa55a_7eaa_09dd_d77a,
    ),
    case(
        "attention: one key has all the weight",
        attention::one_key,
        0xff30_07fc_8ce2_495d,
    ),
    case("attention: failures", attention::failures, 0),
    case("pages: f32 cache", paged::f32, 0x4bb6_c175_05aa_cd7c),
    case("pages: f16 cache", paged::f16, 0xf939_64b5_3c7e_ed42),
    case("pages: int8 cache", paged::int8, 0x9d78_8281_efe0_52b8),
    case("pages: scales of an int8 cache", paged::scales, 0),
    case("pages: faults", paged::faults, 0),
    case(
        "vectors: activations, one by one and in a row",
        vectors::activations,
        0x980d_26dc_9367_35b6,
    ),
    case(
        "vectors: quantization",
        vectors::quantization,
        0xf388_ffd9_b60d_9437,
    ),
    case(
        "vectors: norm, rotation, addition",
        vectors::norm_rope_add,
        0x80cc_50ab_1d86_4169,
    ),
    case(
        "vectors: square roots are correctly rounded",
        vectors::square_roots,
        0x59a1_713b_6fdd_7ab0,
    ),
    case("hashes: leaves of a piece", hashes::leaves, 0),
    case(
        "vectors: f16 there and back",
        vectors::half,
        0x1f87_f165_810e_a7c5,
    ),
    case("edges: tiles", edges::tiles, 0x639c_e355_ca4c_b07e),
    case(
        "edges: operands anywhere",
        edges::unaligned,
        0xa769_c7f3_6e50_e365,
    ),
    case("edges: every length", edges::lengths, 0xf839_9b4f_252d_acd5),
    case(
        "by hand: rotation at the ends of a context",
        by_hand::rope,
        0,
    ),
    case("by hand: tails of SwiGLU", by_hand::swiglu, 0),
    case("by hand: tails of blocks", by_hand::tails, 0),
    case("by hand: heads read their own keys", by_hand::heads, 0),
    case("by hand: repetition", by_hand::repetition, 0),
];

const fn case(
    name: &'static str,
    run: fn(Kernels) -> Result<u64, &'static str>,
    digest: u64,
) -> Case {
    Case { name, run, digest }
}

impl Case {
    /// Runs the case; the error says what differed.
    pub fn check(&self, kernels: Kernels) -> Result<(), &'static str> {
        match (self.run)(kernels)? == self.digest {
            true => Ok(()),
            false => Err("the bits are not those of the reference build"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{println, vec};

    /// `TINYRUSTLM_DIGESTS=1` prints the digests instead of comparing them.
    #[test]
    fn suite_passes_with_every_instruction_set() {
        let mut failed = 0;
        let mut sets = vec![Kernels::SCALAR, Kernels::best()];
        #[cfg(target_arch = "x86_64")]
        sets.extend(Kernels::avx2());
        for kernels in sets {
            for case in CASES {
                let result = match std::env::var("TINYRUSTLM_DIGESTS") {
                    Ok(_) => (case.run)(kernels).map(|digest| println!("{digest:#018x}")),
                    Err(_) => case.check(kernels),
                };
                if let Err(what) = result {
                    println!("{}: {}: {what}", kernels.name(), case.name);
                    failed += 1;
                }
            }
        }
        assert_eq!(failed, 0);
    }
}
