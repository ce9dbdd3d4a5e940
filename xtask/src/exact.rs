//! Gives back the exact minima and maxima that the compiler loosened.
//!
//! Where a build may use relaxed SIMD, LLVM selects `f32x4.relaxed_min` and `relaxed_max` for every
//! vector select that means `pmin` or `pmax`, in the whole module and without being asked. Their
//! results for NaN and for zeros of two signs are the engine's choice, so they must not be in a
//! lane. The selection is the last thing that happens, operands in the same order, so putting the
//! exact instruction back in the same place is what the build without relaxed SIMD has there.
//!
//! That holds as long as nobody calls `f32::min` or `f32::max`, which LLVM would loosen too: they
//! are not in the engine, because what they do with zeros of two signs is open.

use wasmparser::{Operator, Parser, Payload};

use crate::error::LaneFault;

/// The module with the exact instructions; both forms take three bytes.
pub fn restored(module: &[u8]) -> Result<Vec<u8>, LaneFault> {
    let mut out = module.to_vec();
    for (at, opcode) in found(module).map_err(|error| LaneFault::Invalid {
        at: error.offset() as usize,
        words: error.message().to_owned(),
    })? {
        // A prefix byte, then the opcode as LEB128.
        out[at + 1..at + 3].copy_from_slice(&[opcode, 1]);
    }
    Ok(out)
}

/// Where loosened instructions stand, and the low byte of the exact opcode's two.
fn found(module: &[u8]) -> wasmparser::Result<Vec<(usize, u8)>> {
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        let Payload::CodeSectionEntry(body) = payload? else {
            continue;
        };
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
            let (operator, at) = operators.read_with_offset()?;
            let exact = match operator {
                Operator::F32x4RelaxedMin => 0xea,
                Operator::F32x4RelaxedMax => 0xeb,
                Operator::F64x2RelaxedMin => 0xf6,
                Operator::F64x2RelaxedMax => 0xf7,
                _ => continue,
            };
            found.push((at as usize, exact));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One function `(v128 v128) -> v128` whose body is its two arguments and `opcode`.
    fn module(opcode: [u8; 3]) -> Vec<u8> {
        let mut bytes = vec![0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
        bytes.extend([0x01, 0x07, 0x01, 0x60, 0x02, 0x7b, 0x7b, 0x01, 0x7b]);
        bytes.extend([0x03, 0x02, 0x01, 0x00]);
        bytes.extend([0x0a, 0x0b, 0x01, 0x09, 0x00, 0x20, 0x00, 0x20, 0x01]);
        bytes.extend(opcode);
        bytes.push(0x0b);
        bytes
    }

    /// Opcodes from the specifications of SIMD and of relaxed SIMD.
    #[test]
    fn loosened_instructions_become_exact() {
        for (loose, exact) in [
            ([0xfd, 0x8d, 0x02], [0xfd, 0xea, 0x01]),
            ([0xfd, 0x8e, 0x02], [0xfd, 0xeb, 0x01]),
            ([0xfd, 0x8f, 0x02], [0xfd, 0xf6, 0x01]),
            ([0xfd, 0x90, 0x02], [0xfd, 0xf7, 0x01]),
        ] {
            assert_eq!(restored(&module(loose)), Ok(module(exact)));
            assert_eq!(restored(&module(exact)), Ok(module(exact)));
        }
    }
}
