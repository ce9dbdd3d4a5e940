//! A whole GGUF header to a plan.

use std::collections::BTreeMap;

use format::{Generation, Kind, Manifest, Source, TokenizerRef};

use super::architecture;
use super::directory::Directory;
use super::keys::{FAMILY, Keys};
use super::parts::Joined;
use super::reader::Parsed;
use super::tokenizer::TokenizerText;
use super::vocabulary::Vocabulary;
use crate::error::{ConvertError, shown};
use crate::names;
use crate::plan::{
    Matched, Payload, Plan, SourceTensor, clean_name, match_tensors, special_tokens,
    tokenizer_entry,
};
use crate::rope::llama3_from_divisors;
use crate::step::{Need, Options, SourceFile};

const ARCHITECTURE: &str = "general.architecture";
const ROPE_FACTORS: &str = "rope_freqs.weight";

/// Refuses a family that is not read, as soon as it is named.
pub(crate) fn admit_family(keys: &Keys) -> Result<(), ConvertError> {
    match keys.text(ARCHITECTURE) {
        Some(FAMILY) => Ok(()),
        Some(other) => Err(unsupported(ARCHITECTURE, other, FAMILY)),
        None => Err(ConvertError::MissingKey { key: ARCHITECTURE }),
    }
}

/// Refuses what the keys alone rule out, before any tensor is looked at.
/// A part of several may only stand among the others.
pub(crate) fn admit(keys: &Keys, is_part: bool) -> Result<(), ConvertError> {
    if let Some(kind) = keys.text("general.type")
        && kind != "model"
    {
        return Err(unsupported("general.type", kind, "model"));
    }
    if let Some(count) = keys.count("split.count")
        && count > 1
        && !is_part
    {
        let number = keys.count("split.no").unwrap_or(0);
        return Err(ConvertError::SplitFile { number, count });
    }
    for (key, neutral) in [
        ("llama.expert_count", "0"),
        ("llama.expert_used_count", "0"),
        ("llama.attention.sliding_window", "0"),
    ] {
        if let Some(count) = keys.count(key)
            && count != 0
        {
            return Err(unsupported(key, &count.to_string(), neutral));
        }
    }
    if keys.flag("llama.attention.causal") == Some(false) {
        return Err(unsupported("llama.attention.causal", "false", "true"));
    }
    match keys.strange() {
        Some(key) => Err(unsupported(key, "set", "files without this key")),
        None => Ok(()),
    }
}

fn unsupported(key: &str, found: &str, supported: &'static str) -> ConvertError {
    ConvertError::Unsupported {
        key: key.into(),
        found: shown(found),
        supported,
    }
}

/// A parsed file that may wait for its rotary factors.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    /// Indices of the files, the first part first.
    order: Vec<u32>,
    keys: Keys,
    directory: Directory,
    vocabulary: Option<Vocabulary>,
    architecture: format::Architecture,
}

/// Where the rotary factors lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RopeFactors {
    pub source: u32,
    pub at: u64,
    pub len: u32,
}

impl RopeFactors {
    pub fn need(&self) -> Need {
        Need {
            source: self.source,
            at: self.at,
            len: self.len,
        }
    }
}

impl Checkpoint {
    pub fn new(joined: Joined) -> Result<Checkpoint, ConvertError> {
        let Joined { parsed, order } = joined;
        let Parsed {
            mut keys,
            directory,
        } = parsed;
        let vocabulary = Vocabulary::new(&mut keys)?;
        let listed = vocabulary.as_ref().map(Vocabulary::listed);
        let architecture = architecture::lower(&keys, &directory, listed)?;
        Ok(Checkpoint {
            order,
            keys,
            directory,
            vocabulary,
            architecture,
        })
    }

    /// Bytes that must be read before `plan`, if the file has rotary factors.
    pub fn rope_factors(&self) -> Result<Option<RopeFactors>, ConvertError> {
        let Some(tensor) = self.directory.find(ROPE_FACTORS) else {
            return Ok(None);
        };
        let rope = &self.architecture.rope;
        let expected = format::Shape::row(rope.dim / 2);
        let plain = rope.scaling == format::RopeScaling::None;
        if tensor.shape != expected || tensor.codec != format::Codec::F32 || !plain {
            return Err(rope_refused());
        }
        let len = tensor.row_bytes() as u32;
        let (source, at) = (tensor.source, tensor.at);
        Ok(Some(RopeFactors { source, at, len }))
    }

    pub fn set_rope_factors(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        let (divisors, _) = bytes.as_chunks::<4>();
        let divisors: Vec<f32> = divisors.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let base = self.architecture.rope.base;
        let scaling = llama3_from_divisors(&divisors, base).ok_or_else(rope_refused)?;
        self.architecture.rope.scaling = scaling;
        Ok(())
    }

    pub fn plan(self, files: &[SourceFile], options: &Options) -> Result<Plan, ConvertError> {
        let first = self.order.first().map_or(0, |index| *index as usize);
        let source_name = model_name(&files[first].name, files.len());
        let special = self.special()?;
        let find = |canonical: &str| self.find(canonical);
        let Matched {
            mut entries,
            sources: tensors,
        } = match_tensors(&self.architecture, options, find)?;
        self.check_all_used(&tensors)?;
        self.check_quantization(&tensors)?;
        let keys = &self.keys;
        let (mut tokenizer, mut payload) = (None, None);
        if let Some(vocabulary) = self.vocabulary {
            let tokens = vocabulary.tokens;
            let mut text = Box::new(TokenizerText::new(vocabulary));
            let (len, sha256) = text.measure();
            let (name, entry) = tokenizer_entry(len)?;
            tokenizer = Some(TokenizerRef {
                tensor: name.clone(),
                sha256,
                tokens,
            });
            entries.insert(name, entry);
            payload = Some(Payload::Text(text));
        }
        let manifest = Manifest {
            schema: format::MANIFEST_SCHEMA.into(),
            kind: match tokenizer {
                Some(_) => Kind::Model,
                None => Kind::Bare,
            },
            // The name people know the file by; `general.name` is often a training run's.
            name: clean_name(source_name),
            licence: keys.text("general.license").map(String::from),
            source: Source {
                description: format!("{} (GGUF)", clean_name(&files[first].name)),
                sha256: format::Digest::default(),
            },
            architecture: self.architecture,
            tensors: entries,
            tokenizer,
            chat_template: keys.text("tokenizer.chat_template").map(String::from),
            special,
            generation: generation(keys),
        };
        Ok(Plan {
            manifest,
            payload,
            tensors,
            hashed: self.order,
        })
    }

    fn find(&self, canonical: &str) -> Result<SourceTensor, ConvertError> {
        let tensor = names::gguf(canonical);
        self.directory
            .find(&tensor)
            .ok_or(ConvertError::MissingTensor { tensor })
    }

    /// Every tensor of the file must be one that the architecture asks for.
    fn check_all_used(&self, used: &BTreeMap<String, SourceTensor>) -> Result<(), ConvertError> {
        let factors = usize::from(self.directory.has(ROPE_FACTORS));
        if used.len() + factors == self.directory.len() {
            return Ok(());
        }
        let mut names: Vec<&str> = used.values().map(|tensor| tensor.name.as_str()).collect();
        names.push(ROPE_FACTORS);
        names.sort_unstable();
        let extra = self
            .directory
            .names()
            .find(|name| names.binary_search(name).is_err());
        let tensor = shown(extra.unwrap_or_default());
        Err(ConvertError::UnexpectedTensor { tensor })
    }

    /// The blocks of `Q4_0` and `Q8_0` had other forms before version 2.
    fn check_quantization(
        &self,
        used: &BTreeMap<String, SourceTensor>,
    ) -> Result<(), ConvertError> {
        let key = "general.quantization_version";
        let blocks = used
            .values()
            .any(|tensor| tensor.codec.block_bytes().is_some());
        match self.keys.count(key) {
            Some(version) if blocks && version != 2 => {
                Err(unsupported(key, &version.to_string(), "2"))
            }
            _ => Ok(()),
        }
    }

    fn special(&self) -> Result<format::SpecialTokens, ConvertError> {
        let id = |name: &'static str| self.keys.find_u32(name);
        let eos = id("tokenizer.ggml.eos_token_id")?;
        let eot = id("tokenizer.ggml.eot_token_id")?;
        let eom = id("tokenizer.ggml.eom_token_id")?;
        let add_bos = self.keys.flag("tokenizer.ggml.add_bos_token");
        // Llama 3 files leave the flag out and mean it.
        let llama3 = self
            .vocabulary
            .as_ref()
            .is_some_and(|v| v.cutting == super::vocabulary::Cutting::Llama3);
        Ok(special_tokens(
            id("tokenizer.ggml.bos_token_id")?,
            eos,
            id("tokenizer.ggml.padding_token_id")?,
            [eos, eot, eom].into_iter().flatten().collect(),
            add_bos.unwrap_or(llama3),
        ))
    }
}

/// A file's name without its ending, and without the number of a part.
fn model_name(file: &str, files: usize) -> &str {
    let name = file.strip_suffix(".gguf").unwrap_or(file);
    let part = name.rsplit_once("-of-").filter(|_| files > 1);
    let part = part.and_then(|(part, _)| part.rsplit_once('-'));
    part.map_or(name, |(model, _)| model)
}

fn rope_refused() -> ConvertError {
    ConvertError::RopeFactors {
        tensor: ROPE_FACTORS.into(),
    }
}

fn generation(keys: &Keys) -> Generation {
    let real = |key| keys.real(key).map(|value| value as f32);
    Generation {
        temperature: real("general.sampling.temp"),
        top_k: keys
            .count("general.sampling.top_k")
            .and_then(|k| u32::try_from(k).ok()),
        top_p: real("general.sampling.top_p"),
        min_p: real("general.sampling.min_p"),
        repetition_penalty: real("general.sampling.penalty_repeat"),
    }
}
