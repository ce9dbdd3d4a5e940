//! The name of a swarm: everyone who has, or wants, one model file.

use format::{ModelId, sha256};

/// What trackers know a model by: the first 20 bytes of the SHA-256 of `slm-swarm-v1`, the length
/// (u64, little endian) and the root. It hides both, so a tracker cannot tell which model it is
/// unless it already knows the model.
pub fn info_hash(id: ModelId) -> [u8; 20] {
    let mut text = b"slm-swarm-v1".to_vec();
    text.extend_from_slice(&id.length.to_le_bytes());
    text.extend_from_slice(&id.root.0.0);
    let digest = sha256(&text).0;
    std::array::from_fn(|index| digest[index])
}

#[cfg(test)]
mod tests {
    use format::{Digest, Root};

    use super::*;

    /// Expected values from Python's `hashlib` (3.11).
    #[test]
    fn the_hash_is_over_tag_length_and_root() {
        let check = |root: [u8; 32], length, expected: &str| {
            let id = ModelId {
                root: Root(Digest(root)),
                length,
            };
            let found: String = info_hash(id)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(found, expected);
        };
        let counting = std::array::from_fn(|index| index as u8);
        check(
            counting,
            98_362_432,
            "8e90f585c76a446f77981110ce5adcf53f62627d",
        );
        check([0; 32], 0, "4936746aa0a025375f0ad9dd3bd00ae3cd0b1498");
    }
}
