//! The door: a source's bytes in, a `.slm` file's bytes out, or a refusal.
//!
//! A converter does no input or output. Call [`Converter::poll`], do what it says, and call it
//! again:
//!
//! ```
//! use convert::{Converter, ConvertError, Options, Step};
//!
//! fn convert(source: &[u8], out: &mut Vec<u8>) -> Result<(), ConvertError> {
//!     let mut converter = Converter::gguf("a.gguf", source.len() as u64, Options::default())?;
//!     loop {
//!         match converter.poll()? {
//!             Step::Need(need) => {
//!                 let (start, len) = (need.at as usize, need.len as usize);
//!                 converter.feed(need.at, &source[start..start + len])?;
//!             }
//!             Step::Write(bytes) => out.extend_from_slice(bytes),
//!             Step::Done(_) => return Ok(()),
//!         }
//!     }
//! }
//! # assert!(convert(b"<html>", &mut Vec::new()).is_err());
//! ```

use crate::checksum::Checksum;
use crate::emit::{Emitted, Emitter};
use crate::error::ConvertError;
use crate::folder::Folder;
use crate::gguf::{Checkpoint, Parts, RopeFactors};
use crate::plan::Plan;
use crate::step::{Need, Options, Outcome, Phase, Progress, SourceFile, Step};

/// One conversion.
pub struct Converter {
    files: Vec<SourceFile>,
    options: Options,
    stage: Stage,
    /// What was asked for and has not come yet.
    need: Option<Need>,
    /// Output bytes; `ready` until they are handed out.
    out: Vec<u8>,
    ready: bool,
    /// The first error, which every later call repeats.
    failed: Option<ConvertError>,
}

/// From the first byte of the source to the last of the output.
enum Stage {
    Gguf(Box<Parts>),
    RopeFactors(Box<Checkpoint>, RopeFactors),
    Lowered(Box<Checkpoint>),
    Folder(Box<Folder>),
    Checksum(Box<(Plan, Checksum)>),
    Emit(Box<Emitter>),
    Done(Box<Emitter>, Outcome),
    /// Left by an error.
    Failed,
}

enum Turn {
    Need(Need),
    Write,
    Done(Outcome),
}

impl Converter {
    /// Begins with one GGUF file.
    pub fn gguf(
        source_name: &str,
        source_len: u64,
        options: Options,
    ) -> Result<Converter, ConvertError> {
        let files = vec![SourceFile {
            name: source_name.into(),
            len: source_len,
        }];
        Converter::gguf_parts(files, options)
    }

    /// Begins with all files of one GGUF model, in any order.
    pub fn gguf_parts(files: Vec<SourceFile>, options: Options) -> Result<Converter, ConvertError> {
        options.check()?;
        let parts = Box::new(Parts::new(files.clone())?);
        Ok(Converter::new(files, options, Stage::Gguf(parts)))
    }

    /// Begins with the files of a Hugging Face folder, which is called `name`. Files that are not
    /// understood are passed over; the order of the list does not matter.
    pub fn folder(
        name: &str,
        files: Vec<SourceFile>,
        options: Options,
    ) -> Result<Converter, ConvertError> {
        options.check()?;
        let folder = Box::new(Folder::new(name, files.clone())?);
        Ok(Converter::new(files, options, Stage::Folder(folder)))
    }

    fn new(files: Vec<SourceFile>, options: Options, stage: Stage) -> Converter {
        Converter {
            files,
            options,
            stage,
            need: None,
            out: Vec::new(),
            ready: false,
            failed: None,
        }
    }

    /// What to do next. Until a need is met it is repeated; written bytes are handed out once.
    pub fn poll(&mut self) -> Result<Step<'_>, ConvertError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if let Some(need) = self.need {
            return Ok(Step::Need(need));
        }
        match self.turn() {
            Ok(Turn::Need(need)) => {
                self.need = Some(need);
                Ok(Step::Need(need))
            }
            Ok(Turn::Done(outcome)) => Ok(Step::Done(outcome)),
            Ok(_) => Ok(Step::Write(&self.out)),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Hands over exactly the bytes that the last [`Step::Need`] asked for.
    pub fn feed(&mut self, at: u64, bytes: &[u8]) -> Result<(), ConvertError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let asked = self.need.take();
        let len = bytes.len() as u64;
        match asked {
            Some(need) if need.at == at && u64::from(need.len) == len => {}
            _ => {
                let source = asked.map_or(0, |need| need.source);
                return Err(self.fail(ConvertError::NotAsked { source, at, len }));
            }
        }
        self.out.clear();
        let taken = match &mut self.stage {
            Stage::Gguf(parts) => {
                parts.push(bytes);
                Ok(())
            }
            Stage::RopeFactors(checkpoint, _) => checkpoint.set_rope_factors(bytes),
            Stage::Folder(folder) => folder.feed(bytes),
            Stage::Checksum(both) => {
                both.1.feed(bytes);
                Ok(())
            }
            Stage::Emit(emitter) => {
                self.ready = true;
                emitter.feed(bytes, &mut self.out)
            }
            Stage::Lowered(_) | Stage::Done(..) | Stage::Failed => Ok(()),
        };
        if let Stage::RopeFactors(..) = &self.stage
            && let Stage::RopeFactors(checkpoint, _) = self.take_stage()
        {
            self.stage = Stage::Lowered(checkpoint);
        }
        taken.map_err(|error| self.fail(error))
    }

    /// The header of the output: known once the whole source is hashed, before the first
    /// [`Step::Write`].
    pub fn header(&self) -> Option<&format::Header> {
        match &self.stage {
            Stage::Emit(emitter) | Stage::Done(emitter, _) => Some(&emitter.header),
            _ => None,
        }
    }

    /// What the header of the output will be but for the digest of the source: known as soon as
    /// the descriptions are read, so that a model can be judged before the rest of it is there.
    pub fn draft(&self) -> Option<format::Header> {
        match &self.stage {
            Stage::Checksum(both) => format::Header::layout(both.0.manifest.clone()).ok(),
            _ => self.header().cloned(),
        }
    }

    pub fn progress(&self) -> Progress {
        let all = || self.files.iter().map(|file| file.len).sum();
        let (phase, done, total) = match &self.stage {
            Stage::Gguf(parts) => (Phase::Reading, parts.at(), all()),
            Stage::Folder(folder) => (Phase::Reading, folder.read(), all()),
            Stage::RopeFactors(..) | Stage::Lowered(_) | Stage::Failed => {
                (Phase::Reading, 0, all())
            }
            Stage::Checksum(both) => {
                let (done, total) = both.1.progress();
                (Phase::Checking, done, total)
            }
            Stage::Emit(emitter) | Stage::Done(emitter, _) => {
                (Phase::Converting, emitter.at(), emitter.header.file_len)
            }
        };
        Progress { phase, done, total }
    }

    fn fail(&mut self, error: ConvertError) -> ConvertError {
        self.stage = Stage::Failed;
        self.need = None;
        self.out = Vec::new();
        self.failed = Some(error.clone());
        error
    }

    fn take_stage(&mut self) -> Stage {
        std::mem::replace(&mut self.stage, Stage::Failed)
    }

    fn turn(&mut self) -> Result<Turn, ConvertError> {
        if std::mem::take(&mut self.ready) {
            return Ok(Turn::Write);
        }
        self.out.clear();
        loop {
            let need = match &mut self.stage {
                Stage::Gguf(parts) => parts.advance()?,
                Stage::RopeFactors(_, need) => Some(need.need()),
                Stage::Folder(folder) => folder.advance()?,
                Stage::Checksum(both) => both.1.advance(),
                Stage::Emit(emitter) => match emitter.poll(&mut self.out)? {
                    Emitted::Need(need) => Some(need),
                    Emitted::Bytes => return Ok(Turn::Write),
                    Emitted::Done => None,
                },
                Stage::Done(_, outcome) => return Ok(Turn::Done(*outcome)),
                Stage::Lowered(_) | Stage::Failed => None,
            };
            if let Some(need) = need {
                return Ok(Turn::Need(need));
            }
            self.stage = self.next_stage()?;
        }
    }

    /// The stage after one that needs nothing any more.
    fn next_stage(&mut self) -> Result<Stage, ConvertError> {
        let plan = match self.take_stage() {
            Stage::Gguf(parts) => {
                let checkpoint = Box::new(Checkpoint::new(parts.finish()?)?);
                return Ok(match checkpoint.rope_factors()? {
                    Some(factors) => Stage::RopeFactors(checkpoint, factors),
                    None => Stage::Lowered(checkpoint),
                });
            }
            Stage::Lowered(checkpoint) => checkpoint.plan(&self.files, &self.options)?,
            Stage::Folder(folder) => folder.plan(&self.options)?,
            Stage::Checksum(both) => {
                let (mut plan, checksum) = *both;
                plan.manifest.source.sha256 = checksum.finish();
                let emitter = Emitter::new(plan, self.files.clone(), self.options)?;
                return Ok(Stage::Emit(Box::new(emitter)));
            }
            Stage::Emit(emitter) => {
                let outcome = emitter.outcome();
                return Ok(Stage::Done(emitter, outcome));
            }
            stage => return Ok(stage),
        };
        let checksum = Checksum::new(&plan.hashed, &self.files);
        Ok(Stage::Checksum(Box::new((plan, checksum))))
    }
}
