//! Small models with weights from a formula: for the self-tests, and for tests that need a model
//! of a certain shape and no file.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use format::float::{f32_to_bf16, f32_to_f16};
use format::{
    Activation, Architecture, Digest, Family, Ffn, FormatError, Generation, Header, Kind, Layer,
    Layout, MANIFEST_SCHEMA, Manifest, Mixer, Norm, NormKind, Rope, RopePairing, RopeScaling,
    Shape, Source, SpecialTokens, TensorEntry, TensorRole,
};

/// What varies between the models. Heads, widths and vocabulary are fixed: 4 query heads on 2
/// key/value heads of 8, hidden 32, ffn 64, 50 tokens (no multiple of four).
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Layouts of the embedding, the attention matrices, the FFN matrices and the head.
    pub embed: Layout,
    pub attention: Layout,
    pub ffn: Layout,
    /// `None` ties the head to the embedding.
    pub head: Option<Layout>,
    pub biases: bool,
    pub pairing: RopePairing,
    pub layers: u32,
    /// What every other layer sees, from the first on.
    pub window: Option<u32>,
    pub context: u32,
    pub seed: u64,
}

impl Recipe {
    /// Every quantized layout, biases, an untied float head.
    pub const QUANTIZED: Recipe = Recipe {
        embed: Layout::Q8_0R4,
        attention: Layout::Q4_0R4,
        ffn: Layout::Q4_1R4,
        head: Some(Layout::F16),
        biases: true,
        pairing: RopePairing::Half,
        layers: 2,
        window: None,
        context: 96,
        seed: 1,
    };

    /// Three layers, two of which see 20 positions.
    pub const SLIDING: Recipe = Recipe {
        layers: 3,
        window: Some(20),
        context: 160,
        seed: 3,
        ..Recipe::QUANTIZED
    };

    /// Float layouts, a tied head, no biases.
    pub const FLOAT: Recipe = Recipe {
        embed: Layout::F32,
        attention: Layout::Bf16,
        ffn: Layout::F16,
        head: None,
        biases: false,
        pairing: RopePairing::Interleaved,
        layers: 2,
        window: None,
        context: 96,
        seed: 2,
    };

    /// The header and the bytes of the whole file.
    pub fn file(&self) -> Result<(Header, Vec<u8>), FormatError> {
        let header = Header::layout(self.manifest())?;
        let mut file = header.to_bytes();
        file.resize(header.file_len as usize, 0);
        let mut numbers = Numbers(self.seed);
        for tensor in &header.tensors {
            let bytes = &mut file[tensor.range.start as usize..tensor.range.end as usize];
            match tensor.shape.rows {
                1 => fill_vector(bytes, tensor.name.ends_with("norm"), &mut numbers),
                _ => fill_matrix(tensor.layout, bytes, tensor.shape.cols, &mut numbers),
            }
        }
        Ok((header, file))
    }

    fn manifest(&self) -> Manifest {
        let architecture = self.architecture();
        let entries = architecture.tensors().into_iter().map(|spec| {
            let layout = match spec.role {
                TensorRole::Vector => Layout::F32,
                TensorRole::Matrix => self.layout_of(&spec.name),
            };
            let shape: Shape = spec.shape;
            (spec.name, TensorEntry { shape, layout })
        });
        Manifest {
            schema: String::from(MANIFEST_SCHEMA),
            kind: Kind::Bare,
            name: String::from("tiny"),
            licence: None,
            source: Source {
                description: String::from("weights from a formula"),
                sha256: Digest::default(),
            },
            tensors: entries.collect::<BTreeMap<_, _>>(),
            architecture,
            tokenizer: None,
            chat_template: None,
            special: SpecialTokens {
                stop: vec![2],
                ..SpecialTokens::default()
            },
            generation: Generation::default(),
        }
    }

    fn architecture(&self) -> Architecture {
        let layer = |index: u32| Layer {
            mixer: match self.window {
                Some(window) if index.is_multiple_of(2) => Mixer::Sliding { window },
                _ => Mixer::Attention,
            },
            ffn: Ffn::Dense,
        };
        Architecture {
            family: Family::Llama,
            vocab: 50,
            hidden: 32,
            heads: 4,
            kv_heads: 2,
            head_dim: 8,
            ffn: 64,
            activation: Activation::Silu,
            norm: Norm {
                kind: NormKind::Rms,
                eps: 1e-5,
            },
            rope: Rope {
                base: 10_000.0,
                pairing: self.pairing,
                dim: 8,
                scaling: RopeScaling::None,
            },
            qkv_bias: self.biases,
            o_bias: self.biases,
            ffn_bias: self.biases,
            tied_head: self.head.is_none(),
            context: self.context,
            layers: (0..self.layers).map(layer).collect(),
        }
    }

    fn layout_of(&self, name: &str) -> Layout {
        match name.rsplit('.').next() {
            Some("embed") => self.embed,
            Some("head") => self.head.unwrap_or(self.embed),
            Some("q" | "k" | "v" | "o") => self.attention,
            _ => self.ffn,
        }
    }
}

/// A linear congruential generator; its upper half is even enough for weights.
pub(crate) struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// In -1..1, a multiple of 2^-23.
    pub fn signed(&mut self) -> f32 {
        (self.next() >> 8) as f32 / 8_388_608.0 - 1.0
    }
}

/// Norm weights lie around 1, biases around 0.
fn fill_vector(bytes: &mut [u8], is_norm: bool, numbers: &mut Numbers) {
    let middle = if is_norm { 1.0 } else { 0.0 };
    for four in bytes.as_chunks_mut::<4>().0 {
        *four = (middle + 0.25 * numbers.signed()).to_le_bytes();
    }
}

/// Weights of a size that keeps the residual stream in bounds: about `1 / sqrt(cols)`.
pub(crate) fn fill_matrix(layout: Layout, bytes: &mut [u8], cols: u32, numbers: &mut Numbers) {
    let size = if cols < 64 { 0.3 } else { 0.2 };
    match layout {
        Layout::F32 => {
            for four in bytes.as_chunks_mut::<4>().0 {
                *four = (size * numbers.signed()).to_le_bytes();
            }
        }
        Layout::F16 | Layout::Bf16 => {
            for two in bytes.as_chunks_mut::<2>().0 {
                let weight = size * numbers.signed();
                let bits = match layout {
                    Layout::F16 => f32_to_f16(weight),
                    _ => f32_to_bf16(weight),
                };
                *two = bits.to_le_bytes();
            }
        }
        Layout::Q8_0R4 => fill_groups::<136, 128>(bytes, size / 128.0, numbers),
        Layout::Q4_0R4 => fill_groups::<72, 64>(bytes, size / 8.0, numbers),
        Layout::Q4_1R4 => fill_groups::<80, 64>(bytes, size / 8.0, numbers),
        Layout::Bytes => {}
    }
}

/// Codes, then four scales, then for `q4_1` four minima that put zero in the middle.
fn fill_groups<const GROUP: usize, const CODES: usize>(
    bytes: &mut [u8],
    scale: f32,
    numbers: &mut Numbers,
) {
    for group in bytes.as_chunks_mut::<GROUP>().0 {
        let (codes, halves) = group.split_at_mut(CODES);
        for code in codes {
            let any = (numbers.next() >> 24) as u8;
            // No `q8_0` code is -128.
            *code = if CODES == 128 && any == 0x80 {
                0x81
            } else {
                any
            };
        }
        let (scales, minima) = halves.split_at_mut(8);
        for (row, two) in scales.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let scale = scale * (1.0 + 0.5 * numbers.signed());
            *two = f32_to_f16(scale).to_le_bytes();
            if let Some(minimum) = minima.get_mut(2 * row..2 * row + 2) {
                minimum.copy_from_slice(&f32_to_f16(-7.5 * scale).to_le_bytes());
            }
        }
    }
}
