//! The manifest: what a `.slm` file says of itself, schema `tinyrustlm.model.v2`.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::architecture::{SETTING_MIN, number};
use crate::error::excerpt;
use crate::{Architecture, Digest, FormatError, Layout, Shape, TensorRole, TensorSpec};

/// The only value of [`Manifest::schema`].
pub const MANIFEST_SCHEMA: &str = "tinyrustlm.model.v2";
/// Longest name of a model or a tensor, in bytes of UTF-8.
pub const NAME_BYTES_MAX: u32 = 256;
/// Tensors except fillers.
pub const TENSORS_MAX: u32 = 65_536;

/// Name of the tensor that holds the tokenizer payload.
pub const TOKENIZER_TENSOR: &str = "tokenizer";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Always [`MANIFEST_SCHEMA`].
    pub schema: String,
    pub kind: Kind,
    pub name: String,
    /// Licence as the source states it (an SPDX id where it has one).
    pub licence: Option<String>,
    pub source: Source,
    pub architecture: Architecture,
    /// Every tensor except fillers, by name.
    pub tensors: BTreeMap<String, TensorEntry>,
    /// Absent exactly in kind `bare`.
    pub tokenizer: Option<TokenizerRef>,
    /// Jinja text of the chat template, as the source has it.
    pub chat_template: Option<String>,
    pub special: SpecialTokens,
    pub generation: Generation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A model with its tokenizer.
    Model,
    /// Weights without a tokenizer: token ids in, token ids out.
    Bare,
    /// A LoRA adapter for a model given by its root.
    Adapter,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// For people: file name and format.
    pub description: String,
    /// SHA-256 of the source file; for several files, of their digests in name order.
    pub sha256: Digest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorEntry {
    pub shape: Shape,
    pub layout: Layout,
}

/// The tokenizer payload: a Hugging Face `tokenizer.json`, stored as the first tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerRef {
    /// Name of the tensor, always `tokenizer`.
    pub tensor: String,
    pub sha256: Digest,
    /// Ids the tokenizer knows; at most `architecture.vocab`.
    pub tokens: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecialTokens {
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    /// A token of its own. Where the source pads with its `eos`, `bos` or a stop token, this is
    /// `None`: such an id says nothing that the other field does not.
    pub pad: Option<u32>,
    /// Generation finishes after any of these; in ascending order, without repeats.
    pub stop: Vec<u32>,
    /// Whether plain text is preceded by `bos` (chat templates say so themselves).
    pub add_bos: bool,
}

/// What the source recommends for sampling; absent means the program's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
}

impl Manifest {
    /// Checks everything that can be known without the file: schema, architecture, that the
    /// tensors are exactly those of the architecture, special ids and sampling defaults.
    pub fn check(&self) -> Result<(), FormatError> {
        if self.schema != MANIFEST_SCHEMA {
            return Err(FormatError::UnknownSchema {
                found: excerpt(&self.schema),
            });
        }
        if self.kind == Kind::Adapter {
            return Err(FormatError::AdapterUnsupported);
        }
        check_name(&self.name)?;
        self.architecture.check()?;
        self.check_tensors()?;
        self.special.check(self.tokens())?;
        self.generation.check()
    }

    /// Number of ids that are tokens: the tokenizer's, or without one every row of the embedding.
    pub fn tokens(&self) -> u32 {
        match &self.tokenizer {
            Some(tokenizer) => tokenizer.tokens,
            None => self.architecture.vocab,
        }
    }

    fn check_tensors(&self) -> Result<(), FormatError> {
        let specs = self.architecture.tensors();
        if self.tensors.len().max(specs.len() + 1) > TENSORS_MAX as usize {
            return Err(FormatError::TooManyTensors { max: TENSORS_MAX });
        }
        for spec in &specs {
            match self.tensors.get(&spec.name) {
                Some(entry) => entry.check(spec)?,
                None => {
                    return Err(FormatError::MissingTensor {
                        tensor: spec.name.clone(),
                    });
                }
            }
        }
        let mut known: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        known.extend(self.check_tokenizer()?);
        known.sort_unstable();
        let mut names = self.tensors.keys();
        match names.find(|name| known.binary_search(&name.as_str()).is_err()) {
            Some(name) => Err(FormatError::UnexpectedTensor {
                tensor: excerpt(name),
            }),
            None => Ok(()),
        }
    }

    /// Gives the tensor the tokenizer takes, if there is one.
    fn check_tokenizer(&self) -> Result<Option<&'static str>, FormatError> {
        let wanted = self.kind == Kind::Model;
        let Some(tokenizer) = &self.tokenizer else {
            return match wanted {
                true => Err(FormatError::TokenizerPresence { wanted }),
                false => Ok(None),
            };
        };
        if !wanted {
            return Err(FormatError::TokenizerPresence { wanted });
        }
        if tokenizer.tensor != TOKENIZER_TENSOR {
            return Err(FormatError::TokenizerName {
                found: excerpt(&tokenizer.tensor),
            });
        }
        let (min, max) = (1, u64::from(self.architecture.vocab));
        let found = u64::from(tokenizer.tokens);
        if found < min || found > max {
            return Err(FormatError::Dimension {
                field: "tokenizer.tokens",
                found,
                min,
                max,
            });
        }
        let tensor = String::from(TOKENIZER_TENSOR);
        match self.tensors.get(TOKENIZER_TENSOR) {
            None => Err(FormatError::MissingTensor { tensor }),
            Some(entry) if entry.layout != Layout::Bytes => Err(FormatError::LayoutRefused {
                tensor,
                layout: entry.layout,
            }),
            Some(entry) if entry.shape.rows != 1 || entry.shape.cols == 0 => {
                let (expected, found) = (Shape::row(entry.shape.cols.max(1)), entry.shape);
                Err(FormatError::TensorShape {
                    tensor,
                    expected,
                    found,
                })
            }
            Some(_) => Ok(Some(TOKENIZER_TENSOR)),
        }
    }
}

impl TensorEntry {
    fn check(&self, spec: &TensorSpec) -> Result<(), FormatError> {
        let tensor = || spec.name.clone();
        if self.shape != spec.shape {
            let (expected, found) = (spec.shape, self.shape);
            return Err(FormatError::TensorShape {
                tensor: tensor(),
                expected,
                found,
            });
        }
        let allowed = match spec.role {
            TensorRole::Vector => self.layout == Layout::F32,
            TensorRole::Matrix => self.layout != Layout::Bytes,
        };
        if !allowed {
            return Err(FormatError::LayoutRefused {
                tensor: tensor(),
                layout: self.layout,
            });
        }
        Ok(())
    }
}

impl SpecialTokens {
    /// `tokens` is the number of ids that are tokens.
    fn check(&self, tokens: u32) -> Result<(), FormatError> {
        let in_range = |field, id| match id < tokens {
            true => Ok(()),
            false => Err(FormatError::TokenIdRange { field, id, tokens }),
        };
        for (field, id) in [("bos", self.bos), ("eos", self.eos), ("pad", self.pad)] {
            id.map_or(Ok(()), |id| in_range(field, id))?;
        }
        for (index, &id) in self.stop.iter().enumerate() {
            in_range("stop", id)?;
            if index > 0 && self.stop[index - 1] >= id {
                return Err(FormatError::StopOrder {
                    index: index as u32,
                });
            }
        }
        if let Some(id) = self.pad {
            let stop = self.stop.contains(&id).then_some(id);
            for (field, other) in [("bos", self.bos), ("eos", self.eos), ("stop", stop)] {
                if other == Some(id) {
                    return Err(FormatError::TokenIdsCollide { field, id });
                }
            }
        }
        match self.add_bos && self.bos.is_none() {
            true => Err(FormatError::NoBosToAdd),
            false => Ok(()),
        }
    }
}

impl Generation {
    fn check(&self) -> Result<(), FormatError> {
        let check = |field, value: Option<f32>, holds: fn(f32) -> bool| match value {
            Some(value) => number(field, f64::from(value), holds(value)),
            None => Ok(()),
        };
        check("generation.temperature", self.temperature, |t| {
            t == 0.0 || t >= SETTING_MIN
        })?;
        check("generation.top_p", self.top_p, |p| {
            (SETTING_MIN..=1.0).contains(&p)
        })?;
        check("generation.min_p", self.min_p, |p| {
            p == 0.0 || (SETTING_MIN..=1.0).contains(&p)
        })?;
        check(
            "generation.repetition_penalty",
            self.repetition_penalty,
            |r| r >= SETTING_MIN,
        )
    }
}

/// At most 256 bytes, not empty, no control characters.
pub(crate) fn check_name(name: &str) -> Result<(), FormatError> {
    let good = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX as usize
        && !name.chars().any(char::is_control);
    match good {
        true => Ok(()),
        false => Err(FormatError::BadName {
            found: excerpt(name),
        }),
    }
}
