//! A Hugging Face folder: a configuration, weights in safetensors files, perhaps a tokenizer.
//!
//! Reading order: here (which files are read, in which order), `fields` (JSON objects, strictly),
//! `config` (to the closed descriptor), `shard` (headers of safetensors files), `words` (tokenizer,
//! template and generation defaults) with `skim` (large JSON files), `lower` (all of it to a plan).

mod config;
mod fields;
mod lower;
mod shard;
mod skim;
mod words;

use std::collections::VecDeque;

use crate::error::{ConvertError, Lead, shown};
use crate::limits;
use crate::plan::Plan;
use crate::step::{Need, Options, SourceFile};
use config::Config;
use shard::Shards;
use words::Words;

const CONFIG: &str = "config.json";
const INDEX: &str = "model.safetensors.index.json";
const WEIGHTS: &str = "model.safetensors";
const GENERATION: &str = "generation_config.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const TEMPLATE: &str = "chat_template.jinja";
const TOKENIZER: &str = "tokenizer.json";

/// Reads the descriptions of a folder, one file at a time.
pub(crate) struct Folder {
    name: String,
    files: Vec<SourceFile>,
    /// Files still to be read; the first is being read.
    jobs: VecDeque<Job>,
    /// Its bytes so far, and how many are wanted.
    buffer: Vec<u8>,
    wanted: u64,
    /// Bytes read altogether.
    read: u64,
    config: Option<Config>,
    shards: Shards,
    words: Words,
}

/// A file to read, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Config(u32),
    Index(u32),
    /// The header of a safetensors file.
    Shard(u32),
    Generation(u32),
    TokenizerConfig(u32),
    Template(u32),
    Tokenizer(u32),
}

impl Job {
    fn file(self) -> u32 {
        use Job::*;
        match self {
            Config(file) | Index(file) | Shard(file) | Generation(file) => file,
            TokenizerConfig(file) | Template(file) | Tokenizer(file) => file,
        }
    }

    /// The most bytes that are read of it.
    fn max(self) -> u64 {
        match self {
            Job::Config(_) | Job::Generation(_) => limits::CONFIG_BYTES_MAX,
            Job::Index(_) | Job::Shard(_) => limits::SHARD_HEADER_BYTES_MAX,
            Job::TokenizerConfig(_) => limits::TOKENIZER_CONFIG_BYTES_MAX,
            Job::Template(_) => limits::TEXT_BYTES_MAX,
            Job::Tokenizer(_) => limits::TOKENIZER_BYTES_MAX,
        }
    }
}

impl Folder {
    pub fn new(name: &str, files: Vec<SourceFile>) -> Result<Folder, ConvertError> {
        if files.len() as u64 > limits::FILES_MAX {
            return Err(ConvertError::Limit {
                what: "files",
                place: shown(name),
                found: files.len() as u64,
                max: limits::FILES_MAX,
            });
        }
        let mut names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let file = shown(pair[0]);
            return Err(ConvertError::DuplicateFile { file });
        }
        let mut folder = Folder {
            name: name.into(),
            files,
            jobs: VecDeque::new(),
            buffer: Vec::new(),
            wanted: 0,
            read: 0,
            config: None,
            shards: Shards::default(),
            words: Words::default(),
        };
        folder
            .jobs
            .push_back(Job::Config(folder.need_file(CONFIG)?));
        let others = [
            folder.file(GENERATION).map(Job::Generation),
            folder.file(TOKENIZER_CONFIG).map(Job::TokenizerConfig),
            folder.file(TEMPLATE).map(Job::Template),
            folder.file(TOKENIZER).map(Job::Tokenizer),
        ];
        folder.jobs.extend(others.into_iter().flatten());
        Ok(folder)
    }

    /// Bytes read so far.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// The next bytes to read; `None` at the end.
    pub fn advance(&mut self) -> Result<Option<Need>, ConvertError> {
        while let Some(job) = self.jobs.front().copied() {
            let len = self.files[job.file() as usize].len;
            if self.wanted == 0 {
                self.begin(job, len)?;
            }
            let at = self.buffer.len() as u64;
            if at < self.wanted {
                let left = self.wanted - at;
                return Ok(Some(Need {
                    source: job.file(),
                    at,
                    len: left.min(limits::WINDOW_BYTES.into()) as u32,
                }));
            }
            if let (Job::Shard(_), 64) = (job, at)
                && self.shard_head(job.file(), len)?
            {
                continue;
            }
            self.jobs.pop_front();
            let bytes = std::mem::take(&mut self.buffer);
            self.wanted = 0;
            self.finish(job, &bytes)?;
        }
        Ok(None)
    }

    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        self.buffer.extend_from_slice(bytes);
        self.read += bytes.len() as u64;
        Ok(())
    }

    pub fn plan(self, options: &Options) -> Result<Plan, ConvertError> {
        lower::plan(self, options)
    }

    fn file(&self, name: &str) -> Option<u32> {
        let index = self.files.iter().position(|file| file.name == name)?;
        Some(index as u32)
    }

    fn need_file(&self, name: &str) -> Result<u32, ConvertError> {
        self.file(name)
            .ok_or_else(|| ConvertError::MissingFile { file: shown(name) })
    }

    /// Decides how much of a file is read at first.
    fn begin(&mut self, job: Job, len: u64) -> Result<(), ConvertError> {
        let name = &self.files[job.file() as usize].name;
        if let Job::Shard(_) = job {
            // Enough to see what kind of file it is; a header is longer.
            self.wanted = 64;
            return match len {
                64.. => Ok(()),
                0 => Err(not_safetensors(name, Lead::Empty)),
                len => Err(ConvertError::Truncated {
                    file: shown(name),
                    missing: 64 - len,
                    place: "at the beginning".into(),
                }),
            };
        }
        if len > job.max() {
            return Err(ConvertError::Limit {
                what: "bytes",
                place: shown(name),
                found: len,
                max: job.max(),
            });
        }
        self.wanted = len;
        // Once, so that growing never holds the bytes twice.
        self.buffer.reserve_exact(len as usize);
        match len {
            0 => Err(ConvertError::BadJson {
                file: shown(name),
                line: 1,
                column: 1,
            }),
            _ => Ok(()),
        }
    }

    /// Judges the first bytes of a shard and asks for the rest of its header, if there is more.
    fn shard_head(&mut self, file: u32, len: u64) -> Result<bool, ConvertError> {
        let name = &self.files[file as usize].name;
        let lead = Lead::of(&self.buffer);
        if !matches!(lead, Lead::Safetensors | Lead::Bytes(_)) {
            return Err(not_safetensors(name, lead));
        }
        let mut first = [0; 8];
        first.copy_from_slice(&self.buffer[..8]);
        let header = u64::from_le_bytes(first);
        if header > limits::SHARD_HEADER_BYTES_MAX {
            return Err(ConvertError::Limit {
                what: "header bytes",
                place: shown(name),
                found: header,
                max: limits::SHARD_HEADER_BYTES_MAX,
            });
        }
        if header + 8 > len {
            return Err(ConvertError::Truncated {
                file: shown(name),
                missing: header + 8 - len,
                place: "in the header".into(),
            });
        }
        self.buffer.truncate(header as usize + 8);
        self.wanted = header + 8;
        Ok(self.wanted > 64)
    }

    fn finish(&mut self, job: Job, bytes: &[u8]) -> Result<(), ConvertError> {
        let file = job.file();
        match job {
            Job::Config(_) => {
                self.config = Some(Config::parse(bytes)?);
                // The shards come next, before the words, so that weights are refused early.
                match self.file(INDEX) {
                    Some(index) => self.jobs.push_front(Job::Index(index)),
                    None => self.jobs.push_front(Job::Shard(self.need_file(WEIGHTS)?)),
                }
            }
            Job::Index(_) => {
                let names = self.shards.parse_index(bytes)?;
                for name in names.iter().rev() {
                    let shard = self.need_file(name)?;
                    self.jobs.push_front(Job::Shard(shard));
                }
            }
            Job::Shard(_) => {
                let source = &self.files[file as usize];
                self.shards.parse_header(file, source, &bytes[8..])?;
            }
            Job::Generation(_) => self.words.parse_generation(bytes)?,
            Job::TokenizerConfig(_) => self.words.parse_tokenizer_config(bytes)?,
            Job::Template(_) => self.words.parse_template(bytes)?,
            Job::Tokenizer(_) => self.words.parse_tokenizer(file, bytes)?,
        }
        Ok(())
    }
}

fn not_safetensors(file: &str, found: Lead) -> ConvertError {
    ConvertError::NotThisFormat {
        file: shown(file),
        wanted: "a safetensors file",
        found,
    }
}
