//! Hashes of a piece's leaves, four at a time where vectors of four words exist.
//!
//! One SHA-256 is a chain that no vector shortens, but the leaves of a piece do not depend on each
//! other: with SIMD128 each lane of a vector hashes a leaf of its own (FIPS 180-4, section 6.2,
//! four messages side by side). Natively the processor's own SHA instructions are faster.

use alloc::vec;
use alloc::vec::Vec;

use crate::{Digest, LEAF_BYTES, leaf_hash};

const LEAF: usize = LEAF_BYTES as usize;

/// Hash of every leaf of `bytes`, in order; only the last can be shorter than 16 KiB.
pub fn leaf_hashes(bytes: &[u8]) -> Vec<Digest> {
    let mut hashes = vec![Digest::default(); bytes.len().div_ceil(LEAF)];
    hash_leaves(bytes, &mut hashes);
    hashes
}

/// As [`leaf_hashes`], into places that are there: as many leaves as there are both.
pub fn hash_leaves(bytes: &[u8], hashes: &mut [Digest]) {
    let done = whole_fours(bytes, hashes);
    let leaves = bytes.chunks(LEAF).zip(hashes).skip(done);
    for (leaf, hash) in leaves {
        *hash = leaf_hash(leaf);
    }
}

/// Hashes four whole leaves at once as often as there are, and tells how many that were.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
fn whole_fours(bytes: &[u8], hashes: &mut [Digest]) -> usize {
    let (leaves, _) = bytes.as_chunks::<LEAF>();
    let (fours, _) = leaves.as_chunks::<4>();
    let (hashes, _) = hashes.as_chunks_mut::<4>();
    let count = fours.len().min(hashes.len());
    for (four, hashes) in fours.iter().zip(hashes) {
        *hashes = simd128::four(four);
    }
    count * 4
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
fn whole_fours(_: &[u8], _: &mut [Digest]) -> usize {
    0
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128 {
    use core::arch::wasm32::*;

    use super::LEAF;
    use crate::Digest;

    /// The first 32 bits of the fractions of the square roots of the first eight primes.
    const START: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];

    /// The first 32 bits of the fractions of the cube roots of the first 64 primes.
    #[rustfmt::skip]
    const K: [u32; 64] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1,
        0x923f_82a4, 0xab1c_5ed5, 0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3,
        0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174, 0xe49b_69c1, 0xefbe_4786,
        0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147,
        0x06ca_6351, 0x1429_2967, 0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13,
        0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85, 0xa2bf_e8a1, 0xa81a_664b,
        0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a,
        0x5b9c_ca4f, 0x682e_6ff3, 0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208,
        0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ];

    /// Bytes that one round of compression takes from each message.
    const BLOCK: usize = 64;

    pub fn four(leaves: &[[u8; LEAF]; 4]) -> [Digest; 4] {
        let [a, b, c, d] = leaves;
        let blocks = [a, b, c, d].map(|leaf| leaf.as_chunks::<BLOCK>().0);
        let mut state = START.map(|word| u32x4_splat(word));
        let mut words = [u32x4_splat(0); 16];
        for at in 0..LEAF / BLOCK {
            let [a, b, c, d] = blocks.map(|blocks| blocks[at].as_chunks::<4>().0);
            for (j, word) in words.iter_mut().enumerate() {
                let le = |bytes: &[[u8; 4]]| u32::from_le_bytes(bytes[j]);
                *word = big_endian(u32x4(le(a), le(b), le(c), le(d)));
            }
            compress(&mut state, &mut words);
        }
        // The padding of a message of whole blocks: a one bit, zeros, its length in bits.
        words = [u32x4_splat(0); 16];
        words[0] = u32x4_splat(0x8000_0000);
        words[15] = u32x4_splat(8 * LEAF as u32);
        compress(&mut state, &mut words);
        digests(state.map(big_endian))
    }

    fn compress(state: &mut [v128; 8], words: &mut [v128; 16]) {
        let mut s = *state;
        for i in 0..16 {
            round(&mut s, K[i], words[i]);
        }
        for first in [16, 32, 48] {
            for i in 0..16 {
                words[i] = next_word(words, i);
                round(&mut s, K[first + i], words[i]);
            }
        }
        for (state, s) in state.iter_mut().zip(s) {
            *state = u32x4_add(*state, s);
        }
    }

    /// Message schedule: word `16 + i`, which takes the place of word `i`.
    #[inline(always)]
    fn next_word(words: &[v128; 16], i: usize) -> v128 {
        let (early, late) = (words[(i + 1) % 16], words[(i + 14) % 16]);
        let sigma0 = xor3(rotate(early, 7), rotate(early, 18), u32x4_shr(early, 3));
        let sigma1 = xor3(rotate(late, 17), rotate(late, 19), u32x4_shr(late, 10));
        let sum = u32x4_add(u32x4_add(words[i], sigma0), words[(i + 9) % 16]);
        u32x4_add(sum, sigma1)
    }

    #[inline(always)]
    fn round(s: &mut [v128; 8], k: u32, word: v128) {
        let [a, b, c, d, e, f, g, h] = *s;
        let sum1 = xor3(rotate(e, 6), rotate(e, 11), rotate(e, 25));
        let choice = v128_bitselect(f, g, e);
        let keyed = u32x4_add(word, u32x4_splat(k));
        let t1 = u32x4_add(u32x4_add(u32x4_add(h, sum1), choice), keyed);
        let sum0 = xor3(rotate(a, 2), rotate(a, 13), rotate(a, 22));
        // Where `b` and `c` agree they are the majority, elsewhere `a` decides.
        let majority = v128_bitselect(a, b, v128_xor(b, c));
        let t2 = u32x4_add(sum0, majority);
        *s = [u32x4_add(t1, t2), a, b, c, u32x4_add(d, t1), e, f, g];
    }

    #[inline(always)]
    fn rotate(x: v128, right: u32) -> v128 {
        v128_or(u32x4_shr(x, right), u32x4_shl(x, 32 - right))
    }

    #[inline(always)]
    fn xor3(a: v128, b: v128, c: v128) -> v128 {
        v128_xor(v128_xor(a, b), c)
    }

    #[inline(always)]
    fn big_endian(words: v128) -> v128 {
        i8x16_shuffle::<3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12>(words, words)
    }

    /// Lane `t` of every word is message `t`'s.
    fn digests(words: [v128; 8]) -> [Digest; 4] {
        let mut digests = [Digest::default(); 4];
        for (j, word) in words.into_iter().enumerate() {
            let lanes = [
                u32x4_extract_lane::<0>(word),
                u32x4_extract_lane::<1>(word),
                u32x4_extract_lane::<2>(word),
                u32x4_extract_lane::<3>(word),
            ];
            for (digest, lane) in digests.iter_mut().zip(lanes) {
                digest.0[4 * j..4 * j + 4].copy_from_slice(&lane.to_le_bytes());
            }
        }
        digests
    }
}
