//! A whole folder to a plan.

use std::collections::BTreeMap;

use format::{Architecture, Kind, Manifest, Source, SpecialTokens, TokenizerRef};

use super::Folder;
use super::config::Config;
use super::words::Words;
use crate::error::ConvertError;
use crate::names;
use crate::plan::{
    Matched, Payload, Plan, SourceTensor, clean_name, match_tensors, special_tokens,
    tokenizer_entry,
};
use crate::step::{Options, SourceFile};

pub(crate) fn plan(folder: Folder, options: &Options) -> Result<Plan, ConvertError> {
    let Folder {
        name,
        files,
        config,
        shards,
        words,
        ..
    } = folder;
    let config = config.ok_or_else(|| ConvertError::MissingFile {
        file: super::CONFIG.into(),
    })?;
    shards.check_index()?;
    let special = special(&config, &words);
    let architecture = config.architecture;
    let Matched {
        mut entries,
        sources: tensors,
    } = take_tensors(&architecture, options, shards.tensors)?;
    let mut used: Vec<u32> = tensors.values().map(|tensor| tensor.source).collect();
    let (mut tokenizer, mut payload) = (None, None);
    if let Some(file) = &words.tokenizer {
        let (name, entry) = tokenizer_entry(file.len)?;
        tokenizer = Some(TokenizerRef {
            tensor: name.clone(),
            sha256: file.sha256,
            tokens: file.count(architecture.vocab)?,
        });
        entries.insert(name, entry);
        let source = file.file;
        payload = Some(Payload::File { source });
        used.push(source);
    }
    let manifest = Manifest {
        schema: format::MANIFEST_SCHEMA.into(),
        kind: match tokenizer {
            Some(_) => Kind::Model,
            None => Kind::Bare,
        },
        name: clean_name(&name),
        licence: None,
        source: Source {
            description: format!("{} (safetensors)", clean_name(&name)),
            sha256: format::Digest::default(),
        },
        architecture,
        tensors: entries,
        tokenizer,
        chat_template: words.chat_template,
        special,
        generation: words.generation,
    };
    Ok(Plan {
        manifest,
        payload,
        tensors,
        hashed: hashed(&files, used),
    })
}

/// The tensors of the architecture, of which none may be missing and none too many.
fn take_tensors(
    architecture: &Architecture,
    options: &Options,
    mut tensors: BTreeMap<String, SourceTensor>,
) -> Result<Matched, ConvertError> {
    tensors.retain(|name, _| !passed_over(name, architecture.tied_head));
    let matched = match_tensors(architecture, options, |canonical| {
        let tensor = names::hugging_face(canonical);
        let found = tensors.remove(&tensor);
        found.ok_or(ConvertError::MissingTensor { tensor })
    })?;
    match tensors.into_values().next() {
        Some(extra) => Err(ConvertError::UnexpectedTensor { tensor: extra.name }),
        None => Ok(matched),
    }
}

/// Ids of `generation_config.json` rule over those of `config.json`, as in transformers.
fn special(config: &Config, words: &Words) -> SpecialTokens {
    let ruling = |rules: &[u32], others: &[u32]| match rules {
        [] => others.to_vec(),
        rules => rules.to_vec(),
    };
    let bos = ruling(&words.bos, &config.bos);
    let eos = ruling(&words.eos, &config.eos);
    let pad = ruling(&words.pad, &config.pad);
    let first = |ids: &[u32]| ids.first().copied();
    special_tokens(first(&bos), first(&eos), first(&pad), eos, words.add_bos())
}

/// The files whose bytes say something, in the order of their names: those of tensors and
/// tokenizer, which `used` has, and the descriptions.
fn hashed(files: &[SourceFile], mut used: Vec<u32>) -> Vec<u32> {
    let descriptions = [
        super::CONFIG,
        super::INDEX,
        super::GENERATION,
        super::TOKENIZER_CONFIG,
        super::TEMPLATE,
    ];
    for (index, file) in files.iter().enumerate() {
        if descriptions.contains(&file.name.as_str()) {
            used.push(index as u32);
        }
    }
    used.sort_unstable_by_key(|index| &files[*index as usize].name);
    used.dedup();
    used
}

/// Tensors of old checkpoints that say nothing: rotary frequencies, which the configuration gives,
/// and a head beside a tied one, which transformers does not read either.
fn passed_over(name: &str, tied_head: bool) -> bool {
    name.ends_with(".rotary_emb.inv_freq") || (tied_head && name == "lm_head.weight")
}
