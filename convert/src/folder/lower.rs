//! A whole folder to a plan.

use format::{Kind, Manifest, Source, TokenizerRef};

use super::Folder;
use crate::error::ConvertError;
use crate::names;
use crate::plan::{
    Matched, Payload, Plan, clean_name, match_tensors, special_tokens, tokenizer_entry,
};
use crate::step::Options;

pub(crate) fn plan(folder: Folder, options: &Options) -> Result<Plan, ConvertError> {
    let Folder {
        name,
        files,
        config,
        mut shards,
        words,
        ..
    } = folder;
    let config = config.ok_or_else(|| ConvertError::MissingFile {
        file: super::CONFIG.into(),
    })?;
    shards.check_index()?;
    let architecture = config.architecture;
    shards
        .tensors
        .retain(|name, _| !passed_over(name, architecture.tied_head));
    let Matched {
        mut entries,
        sources: tensors,
    } = match_tensors(&architecture, options, |canonical| {
        let tensor = names::hugging_face(canonical);
        let found = shards.tensors.remove(&tensor);
        found.ok_or(ConvertError::MissingTensor { tensor })
    })?;
    if let Some(extra) = shards.tensors.into_values().next() {
        return Err(ConvertError::UnexpectedTensor { tensor: extra.name });
    }

    let add_bos = words.add_bos();
    let ruling = |rules: Vec<u32>, else_: Vec<u32>| if rules.is_empty() { else_ } else { rules };
    let bos = ruling(words.bos, config.bos);
    let eos = ruling(words.eos, config.eos);
    let pad = ruling(words.pad, config.pad);
    let first = |ids: &[u32]| ids.first().copied();
    let special = special_tokens(first(&bos), first(&eos), first(&pad), eos, add_bos);

    let mut tokenizer = None;
    let mut used: Vec<u32> = tensors.values().map(|tensor| tensor.source).collect();
    if let Some(file) = &words.tokenizer {
        let (name, entry) = tokenizer_entry(file.len)?;
        tokenizer = Some(TokenizerRef {
            tensor: name.clone(),
            sha256: file.sha256,
            tokens: file.count(architecture.vocab)?,
        });
        entries.insert(name, entry);
        used.push(file.file);
    }
    let described = files.iter().enumerate().filter(|(_, file)| {
        let names = [super::CONFIG, super::INDEX, super::GENERATION];
        let words = [super::TOKENIZER_CONFIG, super::TEMPLATE];
        names.iter().chain(&words).any(|name| *name == file.name)
    });
    used.extend(described.map(|(index, _)| index as u32));
    used.sort_unstable_by_key(|index| &files[*index as usize].name);
    used.dedup();

    let manifest = Manifest {
        schema: format::MANIFEST_SCHEMA.into(),
        kind: match tokenizer {
            Some(_) => Kind::Model,
            None => Kind::Bare,
        },
        name: clean_name(
            config
                .name
                .as_deref()
                .filter(|n| !n.is_empty())
                .unwrap_or(&name),
        ),
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
    let payload = words
        .tokenizer
        .map(|file| Payload::File { source: file.file });
    Ok(Plan {
        manifest,
        payload,
        tensors,
        hashed: used,
    })
}

/// Tensors of old checkpoints that say nothing: rotary frequencies, which the configuration gives,
/// and a head beside a tied one, which transformers does not read either.
fn passed_over(name: &str, tied_head: bool) -> bool {
    name.ends_with(".rotary_emb.inv_freq") || (tied_head && name == "lm_head.weight")
}
