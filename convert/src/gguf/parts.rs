//! A model in one GGUF file, or in several that say of themselves which part they are.
//!
//! The numbers in the files decide, never their names or the order they came in: `split.no` counts
//! from 0, names count from 1, and only the first part has the keys of the model.

use super::directory::Directory;
use super::keys::Keys;
use super::reader::{Parsed, Reader};
use crate::error::{ConvertError, shown};
use crate::limits;
use crate::step::{Need, SourceFile};

pub(crate) struct Parts {
    files: Vec<SourceFile>,
    /// Reads the file that comes after those in `parsed`.
    reader: Reader,
    parsed: Vec<Parsed>,
    done: u64,
}

/// Bytes that files of one model do not share.
pub(crate) struct Joined {
    pub parsed: Parsed,
    /// Indices of the files, the first part first.
    pub order: Vec<u32>,
}

impl Parts {
    pub fn new(files: Vec<SourceFile>) -> Result<Parts, ConvertError> {
        let Some(first) = files.first() else {
            let file = "a GGUF file".into();
            return Err(ConvertError::MissingFile { file });
        };
        if files.len() as u64 > limits::FILES_MAX {
            return Err(ConvertError::Limit {
                what: "files",
                place: shown(&first.name),
                found: files.len() as u64,
                max: limits::FILES_MAX,
            });
        }
        Ok(Parts {
            reader: reader(first, files.len()),
            files,
            parsed: Vec::new(),
            done: 0,
        })
    }

    /// Bytes understood so far.
    pub fn at(&self) -> u64 {
        self.done + self.reader.at()
    }

    /// The next bytes to read; `None` at the end.
    pub fn advance(&mut self) -> Result<Option<Need>, ConvertError> {
        while let Some(file) = self.files.get(self.parsed.len()) {
            let source = self.parsed.len() as u32;
            if let Some(need) = self.reader.advance()? {
                return Ok(Some(Need { source, ..need }));
            }
            self.done += self.reader.at();
            let next = self.files.get(self.parsed.len() + 1).unwrap_or(file);
            let next = reader(next, self.files.len());
            let parsed = std::mem::replace(&mut self.reader, next).finish()?;
            self.parsed.push(parsed);
        }
        Ok(None)
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.reader.push(bytes);
    }

    /// Call after `advance` has returned `None`.
    pub fn finish(self) -> Result<Joined, ConvertError> {
        let numbers = match self.parsed.as_slice() {
            [_] => vec![0],
            parsed => numbers(parsed, &self.files)?,
        };
        let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
        order.sort_unstable_by_key(|index| numbers[*index as usize]);
        let mut keys = Keys::default();
        let mut directories = Vec::new();
        for (index, parsed) in self.parsed.into_iter().enumerate() {
            if numbers[index] == 0 {
                keys = parsed.keys;
            }
            directories.push((index as u32, parsed.directory));
        }
        let directory = Directory::join(directories)?;
        if numbers.len() > 1
            && let Some(expected) = keys.count("split.tensors.count")
            && expected != directory.len() as u64
        {
            return Err(ConvertError::BadValue {
                key: "split.tensors.count".into(),
                found: expected.to_string(),
                expected: "the number of tensors in all parts together",
            });
        }
        let parsed = Parsed { keys, directory };
        Ok(Joined { parsed, order })
    }
}

fn reader(file: &SourceFile, count: usize) -> Reader {
    match count {
        1 => Reader::new(&file.name, file.len),
        _ => Reader::of_part(&file.name, file.len),
    }
}

/// Which part each file is; all parts of one model must be there, each once.
fn numbers(parsed: &[Parsed], files: &[SourceFile]) -> Result<Vec<u64>, ConvertError> {
    let mut wanted = None;
    let mut numbers = Vec::new();
    for (parsed, file) in parsed.iter().zip(files) {
        let count = parsed.keys.count("split.count").filter(|count| *count > 1);
        let number = parsed.keys.count("split.no").filter(|no| Some(*no) < count);
        let other = || ConvertError::OtherPart {
            file: shown(&file.name),
        };
        let (Some(number), Some(count)) = (number, count) else {
            return Err(other());
        };
        if count != *wanted.get_or_insert(count) {
            return Err(other());
        }
        if numbers.contains(&number) {
            return Err(ConvertError::PartTwice { number });
        }
        numbers.push(number);
    }
    let count = wanted.unwrap_or(0);
    let missing = (0..count).filter(|number| !numbers.contains(number));
    // Enough to see what is wrong.
    let missing: Vec<u64> = missing.take(8).collect();
    match missing.is_empty() {
        true => Ok(numbers),
        false => Err(ConvertError::MissingParts { missing, count }),
    }
}
