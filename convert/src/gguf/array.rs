//! Arrays, element by element.

use super::cursor::{Cursor, Stop};
use super::keys::{Keep, Value};
use super::scalar::{Kind, within, wrong_type};
use super::texts::Texts;
use crate::error::{ConvertError, shown};
use crate::limits;
use crate::window::{CutOff, Window};

/// An array whose elements are being read, or passed over one by one.
pub(crate) struct Array {
    /// Where it is kept; `None` if it is passed over.
    key: Option<&'static str>,
    kind: Kind,
    left: u64,
    texts: Texts,
    codes: Vec<u8>,
}

impl Array {
    /// Reads the head of an array: the array to walk through, or the number of bytes to skip.
    pub fn begin(
        key: &str,
        known: Option<(&'static str, Keep)>,
        cursor: &mut Cursor<'_>,
    ) -> Result<(Option<Array>, u64), Stop> {
        let (id, count) = (cursor.u32()?, cursor.u64()?);
        let kind = Kind::of(id).ok_or_else(|| ConvertError::UnknownValueType {
            key: shown(key),
            id,
        })?;
        if kind == Kind::Array {
            return Err(ConvertError::NestedArray { key: shown(key) }.into());
        }
        let max = match known {
            Some((_, Keep::Texts(max) | Keep::Codes(max))) => max,
            _ => limits::ARRAY_ELEMENTS_MAX,
        };
        within(key, "array elements", count, max)?;
        let array = |key| Array {
            key,
            kind,
            left: count,
            texts: Texts::default(),
            codes: Vec::new(),
        };
        match (known, kind.size()) {
            (None | Some((_, Keep::Nothing)), Some(size)) => Ok((None, count * size)),
            (None | Some((_, Keep::Nothing)), None) => Ok((Some(array(None)), 0)),
            (Some((name, Keep::Texts(_))), None) => Ok((Some(array(Some(name))), 0)),
            (Some((name, Keep::Codes(_))), _) if matches!(kind, Kind::I32 | Kind::U32) => {
                Ok((Some(array(Some(name))), 0))
            }
            (Some((_, keep @ (Keep::Texts(_) | Keep::Codes(_)))), _) => {
                Err(wrong_type(key, keep, kind.name()))
            }
            (Some((_, keep)), _) => Err(wrong_type(key, keep, "an array")),
        }
    }

    /// Takes memory for as many elements as are claimed, if the rest of the file can hold them.
    pub fn reserve(&mut self, remaining: u64) -> Result<(), CutOff> {
        let least = self.left * self.kind.size().unwrap_or(8);
        if least > remaining {
            return Err(CutOff {
                missing: least - remaining,
            });
        }
        match self.kind {
            _ if self.key.is_none() => {}
            Kind::Text => self.texts.reserve(self.left as usize),
            _ => self.codes.reserve_exact(self.left as usize),
        }
        Ok(())
    }

    /// Reads the elements that have arrived. `kept` counts the bytes of all texts kept so far.
    pub fn read(&mut self, window: &mut Window, kept: &mut u64) -> Result<(), Stop> {
        while self.left > 0 {
            let mut cursor = Cursor::new(window.rest());
            let mut skip = 0;
            match (self.kind, self.key) {
                (Kind::Text, None) => {
                    let len = cursor.u64()?;
                    skip = within("an array", "text bytes", len, limits::STRING_BYTES_MAX)?;
                }
                (Kind::Text, Some(key)) => {
                    let len = within(key, "text bytes", cursor.u64()?, limits::TOKEN_BYTES_MAX)?;
                    let all = *kept + len;
                    within(key, "bytes", all, limits::VOCABULARY_BYTES_MAX)?;
                    let bytes = cursor.bytes(len)?;
                    let text = std::str::from_utf8(bytes).map_err(|_| ConvertError::NotUtf8 {
                        place: format!("text {} of {key}", self.texts.len()),
                    })?;
                    self.texts.push(text);
                    *kept = all;
                }
                _ => {
                    let code = i32::from_le_bytes(cursor.array()?);
                    let token = self.codes.len() as u32;
                    let code = u8::try_from(code).map_err(|_| ConvertError::TokenType {
                        token,
                        found: code.into(),
                    })?;
                    self.codes.push(code);
                }
            }
            let end = cursor.pos();
            window.take(end);
            self.left -= 1;
            window.skip(skip)?;
        }
        Ok(())
    }

    /// The key and the value, if the array is kept.
    pub fn finish(mut self) -> Option<(&'static str, Value)> {
        let key = self.key?;
        self.texts.shrink();
        Some(match self.kind {
            Kind::Text => (key, Value::Texts(self.texts)),
            _ => (key, Value::Codes(self.codes)),
        })
    }
}
