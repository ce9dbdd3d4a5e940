//! Roots against libtorrent 2.1.1 (Python package `libtorrent`, `create_torrent` with `v2_only`
//! and a piece length of 1 MiB; `pieces root` and `piece layers` of the made torrent).
//! For files of at most one piece BEP 52 has no piece layer; ours is then the root alone.

#![allow(clippy::unwrap_used)]

use format::{
    Digest, FormatError, Hasher, LEAF_BYTES, ModelId, PIECE_BYTES, PieceIndex, PieceLayer, Root,
    leaf_hash, piece_hash, piece_hash_of_leaves, sha256,
};
use proptest::prelude::*;

/// The content of every file here: the upper byte of each state of a 32-bit xorshift
/// (13, 17, 5), started at 0x9e3779b9 and stepped before each byte.
fn content(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let step = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 24) as u8
    };
    std::iter::repeat_with(step).take(len).collect()
}

/// Length, root, SHA-256 of the concatenated piece layer (of more than one piece).
const EXPECTED: [(usize, &str, &str); 12] = [
    (
        1,
        "4ae81572f06e1b88fd5ced7a1a000945432e83e1551e6f721ee9c00b8cc33260",
        "",
    ),
    (
        16383,
        "3e2b9412b803658156f0539691abf0f2d123f7a26ed4819a8a867fc179843274",
        "",
    ),
    (
        16384,
        "d7c87a00e5005f88d0aeffab22ee3c3ffd6186f7b6a5ff1b909e0c452917a285",
        "",
    ),
    (
        16385,
        "57f4109b2b26dc62c272f0be6153e30a4df5fe5632339e15c2de6df0e6d5b9ad",
        "",
    ),
    (
        49152,
        "8ecf44f3ffe62ac18569cc4647aa36834e31b9477ce73868eeae2ecbcf67981f",
        "",
    ),
    (
        1048575,
        "62138cfbdef60c2893c1ed64eaebc455e9b6d77c79d0bc56651ceab3c41584b4",
        "",
    ),
    (
        1048576,
        "8c731a4e02ef6a9a50db526cf1ad19970cf9849420c8da8b7f96e6badc2556e5",
        "",
    ),
    (
        1048577,
        "541ab7dc45a7739f213870e12318d95f3b1fb91e7c103c39eee16f25762ac46e",
        "541ab7dc45a7739f213870e12318d95f3b1fb91e7c103c39eee16f25762ac46e",
    ),
    (
        2097152,
        "1b956c1df75b0cc8faaefd5e08eebe72b838ecd6c99930e7a4d7b3c83c2fa0f7",
        "1b956c1df75b0cc8faaefd5e08eebe72b838ecd6c99930e7a4d7b3c83c2fa0f7",
    ),
    (
        3145728,
        "91ea46379b7ebf861e564ebfa6b8306ff68b71478f5a5c2c20255a4be7dc1c91",
        "446853d2b01d32dd933b91278d760822a2e86ae4d77aa3c53b04a288015dc484",
    ),
    (
        5255225,
        "e30d3b7c07e5facf3530916a3985b43f58bf4486f985ada38839d284ceba8bc8",
        "2d26a2a2f1c5c70efd78a10013c5726a0d744b5e28a8154899449e77bd12f407",
    ),
    (
        8388607,
        "45a27508c114875b2bee53a9d51c0ccf84a220b20e51b4420a92a1fb035abf28",
        "10a7981b28c4a5e81958e59cb06dcc348373be60ea6ff011f7cd1a920c68f0dd",
    ),
];

fn hash(bytes: &[u8]) -> PieceLayer {
    let mut hasher = Hasher::default();
    hasher.update(bytes);
    hasher.finish()
}

#[test]
fn roots_are_those_of_bittorrent_v2() {
    let whole = content(8388607);
    for (len, root, layer_sha256) in EXPECTED {
        let bytes = &whole[..len];
        let layer = hash(bytes);
        let root = Root(Digest::from_hex(root).unwrap());
        assert_eq!(
            layer.id,
            ModelId {
                root,
                length: len as u64
            },
            "{len}"
        );
        if !layer_sha256.is_empty() {
            assert_eq!(sha256(&layer.to_bytes()).to_string(), layer_sha256, "{len}");
        }
        let pieces: Vec<Digest> = bytes
            .chunks(PIECE_BYTES as usize)
            .map(|piece| piece_hash(piece, len as u64))
            .collect();
        assert_eq!(layer.hashes(), pieces, "{len}");
        assert_eq!(layer.id.pieces() as usize, pieces.len(), "{len}");
        assert_eq!(
            PieceLayer::parse(layer.id, &layer.to_bytes()),
            Ok(layer),
            "{len}"
        );
    }
}

#[test]
fn portions_do_not_matter() {
    let (len, root, _) = EXPECTED[10];
    let bytes = content(len);
    for portion in [1000, 16384, 16385, 65536, 1048576, 1048579] {
        let mut hasher = Hasher::default();
        for part in bytes.chunks(portion) {
            hasher.update(part);
            hasher.update(&[]);
        }
        assert_eq!(
            hasher.finish().id.root.to_string(),
            root,
            "portions of {portion}"
        );
    }
}

/// BEP 52 gives an empty file no root: ours is the missing leaf, 32 zero bytes, and no piece.
#[test]
fn the_empty_file_has_the_zero_root_and_no_piece() {
    let layer = hash(&[]);
    assert_eq!(
        layer.id,
        ModelId {
            root: Root(Digest([0; 32])),
            length: 0
        }
    );
    assert_eq!(layer.hashes(), []);
    assert_eq!(layer.id.pieces(), 0);
    assert_eq!(PieceLayer::parse(layer.id, &[]), Ok(layer));
}

#[test]
fn a_piece_is_hashed_from_its_leaves() {
    let bytes = content(PIECE_BYTES as usize + 20000);
    let len = bytes.len() as u64;
    for piece in bytes.chunks(PIECE_BYTES as usize) {
        let leaves: Vec<Digest> = piece.chunks(LEAF_BYTES as usize).map(leaf_hash).collect();
        assert_eq!(piece_hash_of_leaves(&leaves, len), piece_hash(piece, len));
    }
}

#[test]
fn a_piece_layer_that_does_not_hash_to_the_root_is_refused() {
    let layer = hash(&content(EXPECTED[10].0));
    let good = layer.to_bytes();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert_eq!(
            PieceLayer::parse(layer.id, &bad),
            Err(FormatError::PieceLayerRoot),
            "{at}"
        );
    }
    let expected = good.len() as u64;
    for bad in [
        &good[1..],
        &good[32..],
        &[],
        &[&good[..], &good[..32]].concat(),
    ] {
        let found = bad.len() as u64;
        let error = FormatError::PieceLayerLength { expected, found };
        assert_eq!(PieceLayer::parse(layer.id, bad), Err(error));
    }
    // A length that no list of hashes can match, and that must not be multiplied blindly.
    let id = ModelId {
        length: u64::MAX,
        ..layer.id
    };
    let error = FormatError::PieceLayerLength {
        expected: (1 << 44) * 32,
        found: expected,
    };
    assert_eq!(PieceLayer::parse(id, &good), Err(error));
    assert_eq!(id.pieces(), u32::MAX);
}

#[test]
fn piece_ranges_cover_the_file() {
    let id = ModelId {
        root: Root::default(),
        length: 2 * 1048576 + 5,
    };
    assert_eq!(id.pieces(), 3);
    assert_eq!(id.piece_range(PieceIndex(0)), (0, 1048576));
    assert_eq!(id.piece_range(PieceIndex(2)), (2097152, 5));
    assert_eq!(id.piece_range(PieceIndex(3)), (3145728, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The streaming hasher against the pieces hashed one by one, at any length and any cuts.
    #[test]
    fn streaming_equals_piecewise(len in 0usize..2_500_000, cut in 1usize..400_000) {
        let bytes = content(len);
        let mut hasher = Hasher::default();
        bytes.chunks(cut).for_each(|part| hasher.update(part));
        let layer = hasher.finish();
        let pieces: Vec<Digest> = bytes
            .chunks(PIECE_BYTES as usize)
            .map(|piece| piece_hash(piece, len as u64))
            .collect();
        prop_assert_eq!(layer.hashes(), &pieces[..]);
        prop_assert_eq!(PieceLayer::parse(layer.id, &layer.to_bytes()), Ok(layer));
    }
}
