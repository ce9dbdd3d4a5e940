//! GGUF bytes to keys and tensors, in portions.
//!
//! One item at a time: a key with its value, an element of a long array, a tensor's description.
//! An item is understood only when all of it has arrived; what is not kept is passed over without
//! being read. No step looks at a byte twice, except at the seam of two portions.

use std::collections::BTreeSet;

use format::Digest;

use super::array::Array;
use super::cursor::{Cursor, Stop};
use super::directory::{Directory, Entry};
use super::keys::{self, Keep, Keys};
use super::scalar::{Kind, scalar, text};
use crate::error::{ConvertError, Lead, shown};
use crate::limits;
use crate::step::Need;
use crate::window::Window;

pub(crate) struct Reader {
    /// One of several files of a model.
    is_part: bool,
    file: String,
    file_len: u64,
    window: Window,
    state: State,
    keys_left: u64,
    keys_total: u64,
    tensors_left: u64,
    /// Digests of the keys seen. Ordered, so that no choice of keys makes look-ups slow.
    seen: BTreeSet<Digest>,
    /// Bytes of tokens and merges kept so far.
    vocabulary_bytes: u64,
    keys: Keys,
    entries: Vec<Entry>,
}

enum State {
    Magic,
    Counts,
    Key,
    Array(Array),
    Tensor,
    Done,
}

/// A whole GGUF header.
pub(crate) struct Parsed {
    pub keys: Keys,
    pub directory: Directory,
}

impl Reader {
    pub fn new(file: &str, file_len: u64) -> Reader {
        Reader {
            is_part: false,
            file: file.into(),
            file_len,
            window: Window::new(file_len),
            state: State::Magic,
            keys_left: 0,
            keys_total: 0,
            tensors_left: 0,
            seen: BTreeSet::new(),
            vocabulary_bytes: 0,
            keys: Keys::default(),
            entries: Vec::new(),
        }
    }

    /// For one of several files of a model.
    pub fn of_part(file: &str, file_len: u64) -> Reader {
        Reader {
            is_part: true,
            ..Reader::new(file, file_len)
        }
    }

    /// Offset of the first byte not understood yet.
    pub fn at(&self) -> u64 {
        self.window.at()
    }

    /// Understands all it can. `Some` asks for more bytes, `None` means the end.
    pub fn advance(&mut self) -> Result<Option<Need>, ConvertError> {
        while !matches!(self.state, State::Done) {
            let step = self.step();
            let at = self.window.at();
            if at > limits::GGUF_HEADER_BYTES_MAX {
                return Err(self.limit("header bytes", at, limits::GGUF_HEADER_BYTES_MAX));
            }
            match step {
                Ok(()) => {}
                Err(Stop::Refused(error)) => return Err(error),
                Err(Stop::CutOff(cut)) => return Err(self.truncated(cut.missing)),
                Err(Stop::Short(wanted)) => {
                    let request = self.window.request(wanted);
                    let (at, len) = request.map_err(|cut| self.truncated(cut.missing))?;
                    return Ok(Some(Need { source: 0, at, len }));
                }
            }
        }
        Ok(None)
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.window.push(bytes);
    }

    /// Call after `advance` has returned `None`.
    pub fn finish(self) -> Result<Parsed, ConvertError> {
        let alignment = self
            .keys
            .count("general.alignment")
            .unwrap_or(limits::ALIGNMENT_DEFAULT);
        let header_end = self.window.at();
        let directory = Directory::new(
            self.entries,
            header_end,
            alignment,
            (&self.file, self.file_len),
        )?;
        Ok(Parsed {
            keys: self.keys,
            directory,
        })
    }

    fn step(&mut self) -> Result<(), Stop> {
        match self.state {
            State::Magic => self.magic(),
            State::Counts => self.counts(),
            State::Key => self.key(),
            State::Array(_) => self.elements(),
            State::Tensor => self.tensor(),
            State::Done => Ok(()),
        }
    }

    fn magic(&mut self) -> Result<(), Stop> {
        let wanted = self.file_len.min(64);
        let lead = Cursor::new(self.window.rest()).bytes(wanted)?;
        match lead.get(..4) {
            Some(b"GGUF") => {}
            Some(b"FUGG") => return Err(ConvertError::BigEndian.into()),
            // Containers before GGUF: ggml, ggmf, ggjt, ggla, stored little-endian.
            Some(b"lmgg" | b"fmgg" | b"tjgg" | b"algg") => {
                return Err(ConvertError::OldFormat { version: 0 }.into());
            }
            _ => {
                let (file, found) = (shown(&self.file), Lead::of(lead));
                let wanted = "a GGUF file";
                return Err(ConvertError::NotThisFormat {
                    file,
                    wanted,
                    found,
                }
                .into());
            }
        }
        self.window.take(4);
        self.state = State::Counts;
        Ok(())
    }

    fn counts(&mut self) -> Result<(), Stop> {
        let mut cursor = Cursor::new(self.window.rest());
        match cursor.u32()? {
            2 | 3 => {}
            1 => return Err(ConvertError::OldFormat { version: 1 }.into()),
            // A big-endian file has the same magic and its version in the upper bytes.
            version if version != 0 && version & 0xffff == 0 => {
                return Err(ConvertError::BigEndian.into());
            }
            version => return Err(ConvertError::UnknownVersion { version }.into()),
        }
        let (tensors, keys) = (cursor.u64()?, cursor.u64()?);
        let end = cursor.pos();
        if tensors > limits::TENSORS_MAX {
            return Err(self
                .limit("tensor count", tensors, limits::TENSORS_MAX)
                .into());
        }
        if keys > limits::KEYS_MAX {
            return Err(self.limit("key count", keys, limits::KEYS_MAX).into());
        }
        self.window.take(end);
        (self.tensors_left, self.keys_left, self.keys_total) = (tensors, keys, keys);
        self.next_key()
    }

    /// Chooses the state after a key and its value.
    fn next_key(&mut self) -> Result<(), Stop> {
        // The family is told as soon as it is known: refusing a large foreign file costs one read.
        let is_told = self.keys.text("general.architecture").is_some();
        // Only the first of several parts says what the model is.
        let is_later = self.keys.count("split.no").is_some_and(|no| no > 0);
        if is_told || (self.keys_left == 0 && !is_later) {
            super::lower::admit_family(&self.keys)?;
        }
        if self.keys_left > 0 {
            self.state = State::Key;
            return Ok(());
        }
        if !(is_later && self.is_part) {
            super::lower::admit(&self.keys, self.is_part)?;
        }
        self.next_tensor();
        Ok(())
    }

    fn next_tensor(&mut self) {
        self.state = if self.tensors_left > 0 {
            State::Tensor
        } else {
            State::Done
        };
    }

    fn key(&mut self) -> Result<(), Stop> {
        let mut cursor = Cursor::new(self.window.rest());
        let len = cursor.u64()?;
        let index = self.keys_total - self.keys_left;
        if len == 0 {
            return Err(ConvertError::EmptyKey { index }.into());
        }
        if len > limits::KEY_BYTES_MAX {
            return Err(self.limit("key bytes", len, limits::KEY_BYTES_MAX).into());
        }
        let bytes = cursor.bytes(len)?;
        let key = std::str::from_utf8(bytes).map_err(|_| ConvertError::NotUtf8 {
            place: format!("key number {index}"),
        })?;
        let id = cursor.u32()?;
        let kind = Kind::of(id).ok_or_else(|| ConvertError::UnknownValueType {
            key: shown(key),
            id,
        })?;
        let known = keys::keep(key);
        let digest = format::sha256(bytes);
        if self.seen.contains(&digest) {
            return Err(ConvertError::DuplicateKey { key: shown(key) }.into());
        }
        let (value, skip, array) = match kind {
            Kind::Text => {
                let (value, skip) = text(key, known, &mut cursor)?;
                (value, skip, None)
            }
            Kind::Array => {
                let (array, skip) = Array::begin(key, known, &mut cursor)?;
                (None, skip, array)
            }
            _ => {
                let keep = known.map_or(Keep::Nothing, |(_, keep)| keep);
                (scalar(key, kind, keep, &mut cursor)?, 0, None)
            }
        };
        let end = cursor.pos();
        if let (Some((name, _)), Some(value)) = (known, value) {
            self.keys.insert(name, value);
        } else if known.is_none() {
            self.keys.pass_over(key);
        }
        self.seen.insert(digest);
        self.window.take(end);
        self.keys_left -= 1;
        self.window.skip(skip)?;
        match array {
            Some(mut array) => {
                array.reserve(self.window.remaining())?;
                self.state = State::Array(array);
            }
            None => self.next_key()?,
        }
        Ok(())
    }

    fn elements(&mut self) -> Result<(), Stop> {
        if let State::Array(array) = &mut self.state {
            array.read(&mut self.window, &mut self.vocabulary_bytes)?;
        }
        if let State::Array(array) = std::mem::replace(&mut self.state, State::Key)
            && let Some((key, value)) = array.finish()
        {
            self.keys.insert(key, value);
        }
        self.next_key()
    }

    fn tensor(&mut self) -> Result<(), Stop> {
        let mut cursor = Cursor::new(self.window.rest());
        let len = cursor.u64()?;
        if len > limits::GGUF_NAME_BYTES_MAX {
            return Err(self
                .limit("tensor name bytes", len, limits::GGUF_NAME_BYTES_MAX)
                .into());
        }
        let index = self.entries.len();
        let name = std::str::from_utf8(cursor.bytes(len)?).map_err(|_| ConvertError::NotUtf8 {
            place: format!("the name of tensor {index}"),
        })?;
        let rank = cursor.u32()?;
        if rank == 0 || rank > limits::DIMENSIONS_MAX {
            return Err(ConvertError::BadDimensions {
                tensor: shown(name),
            }
            .into());
        }
        let mut dims = [1u64; limits::DIMENSIONS_MAX as usize];
        for dim in &mut dims[..rank as usize] {
            *dim = cursor.u64()?;
        }
        let (kind, offset) = (cursor.u32()?, cursor.u64()?);
        let entry = Entry::new(name, dims, kind, offset)?;
        let end = cursor.pos();
        self.entries.push(entry);
        self.window.take(end);
        self.tensors_left -= 1;
        self.next_tensor();
        Ok(())
    }

    fn truncated(&self, missing: u64) -> ConvertError {
        let place = match self.state {
            State::Magic | State::Counts => "at the beginning",
            State::Key | State::Array(_) => "in the keys",
            State::Tensor | State::Done => "in the list of tensors",
        };
        ConvertError::Truncated {
            file: shown(&self.file),
            missing,
            place: place.into(),
        }
    }

    fn limit(&self, what: &'static str, found: u64, max: u64) -> ConvertError {
        ConvertError::Limit {
            what,
            place: shown(&self.file),
            found,
            max,
        }
    }
}
