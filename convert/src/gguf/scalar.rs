//! The value types of GGUF, and single values.

use super::cursor::{Cursor, Stop};
use super::keys::{Keep, Value};
use crate::error::{ConvertError, shown};
use crate::limits;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    Array,
    U64,
    I64,
    F64,
}

impl Kind {
    pub fn of(id: u32) -> Option<Kind> {
        use Kind::*;
        [
            U8, I8, U16, I16, U32, I32, F32, Bool, Text, Array, U64, I64, F64,
        ]
        .get(id as usize)
        .copied()
    }

    /// Bytes of a value; texts and arrays have their own length.
    pub fn size(self) -> Option<u64> {
        use Kind::*;
        match self {
            U8 | I8 | Bool => Some(1),
            U16 | I16 => Some(2),
            U32 | I32 | F32 => Some(4),
            U64 | I64 | F64 => Some(8),
            Text | Array => None,
        }
    }

    /// For errors.
    pub fn name(self) -> &'static str {
        use Kind::*;
        match self {
            U8 => "u8",
            I8 => "i8",
            U16 => "u16",
            I16 => "i16",
            U32 => "u32",
            I32 => "i32",
            F32 => "f32",
            Bool => "a flag",
            Text => "a text",
            Array => "an array",
            U64 => "u64",
            I64 => "i64",
            F64 => "f64",
        }
    }
}

impl Keep {
    /// For errors.
    pub fn name(self) -> &'static str {
        match self {
            Keep::Text => "a text",
            Keep::Count => "a whole number",
            Keep::U32 => "u32",
            Keep::Real => "a float",
            Keep::Flag => "a flag",
            Keep::Texts(_) => "an array of texts",
            Keep::Codes(_) => "an array of i32",
            Keep::Nothing => "anything",
        }
    }
}

enum Number {
    Whole(i128),
    Real(f64),
    Flag(u8),
}

fn number(kind: Kind, cursor: &mut Cursor<'_>) -> Result<Option<Number>, Stop> {
    let whole = |value: i128| Some(Number::Whole(value));
    Ok(match kind {
        Kind::U8 => whole(u8::from_le_bytes(cursor.array()?).into()),
        Kind::I8 => whole(i8::from_le_bytes(cursor.array()?).into()),
        Kind::U16 => whole(u16::from_le_bytes(cursor.array()?).into()),
        Kind::I16 => whole(i16::from_le_bytes(cursor.array()?).into()),
        Kind::U32 => whole(cursor.u32()?.into()),
        Kind::I32 => whole(i32::from_le_bytes(cursor.array()?).into()),
        Kind::U64 => whole(cursor.u64()?.into()),
        Kind::I64 => whole(i64::from_le_bytes(cursor.array()?).into()),
        Kind::F32 => Some(Number::Real(f32::from_le_bytes(cursor.array()?).into())),
        Kind::F64 => Some(Number::Real(f64::from_le_bytes(cursor.array()?))),
        Kind::Bool => Some(Number::Flag(cursor.array::<1>()?[0])),
        Kind::Text | Kind::Array => None,
    })
}

/// Reads a number or flag. `None` means that a value of this kind is passed over.
pub(crate) fn scalar(
    key: &str,
    kind: Kind,
    keep: Keep,
    cursor: &mut Cursor<'_>,
) -> Result<Option<Value>, Stop> {
    let wrong = || wrong_type(key, keep, kind.name());
    let bad = |found: String, expected: &'static str| {
        Stop::Refused(ConvertError::BadValue {
            key: shown(key),
            found,
            expected,
        })
    };
    let number = number(kind, cursor)?.ok_or_else(wrong)?;
    match (keep, number) {
        (Keep::Nothing, _) => Ok(None),
        (Keep::U32, _) if kind != Kind::U32 => Err(wrong()),
        (Keep::Count | Keep::U32, Number::Whole(value)) => match u64::try_from(value) {
            Ok(value) => Ok(Some(Value::Count(value))),
            Err(_) => Err(bad(value.to_string(), "a number of at least zero")),
        },
        (Keep::Real, Number::Real(value)) if value.is_finite() => Ok(Some(Value::Real(value))),
        (Keep::Real, Number::Real(value)) => Err(bad(value.to_string(), "a finite number")),
        (Keep::Flag, Number::Flag(value @ 0..=1)) => Ok(Some(Value::Flag(value == 1))),
        (Keep::Flag, Number::Flag(value)) => Err(bad(value.to_string(), "0 or 1")),
        _ => Err(wrong()),
    }
}

/// Reads a text that is kept, or the number of bytes to pass over.
pub(crate) fn text(
    key: &str,
    known: Option<(&'static str, Keep)>,
    cursor: &mut Cursor<'_>,
) -> Result<(Option<Value>, u64), Stop> {
    let len = within(key, "text bytes", cursor.u64()?, limits::STRING_BYTES_MAX)?;
    match known {
        None | Some((_, Keep::Nothing)) => Ok((None, len)),
        Some((_, Keep::Text)) => {
            within(key, "text bytes", len, limits::TEXT_BYTES_MAX)?;
            let text = std::str::from_utf8(cursor.bytes(len)?)
                .map_err(|_| ConvertError::NotUtf8 { place: shown(key) })?;
            // Files written from C strings may carry their end mark.
            Ok((Some(Value::Text(text.trim_end_matches('\0').into())), 0))
        }
        Some((_, keep)) => Err(wrong_type(key, keep, "a text")),
    }
}

/// Gives back a number that is not above its limit.
pub(crate) fn within(
    place: &str,
    what: &'static str,
    found: u64,
    max: u64,
) -> Result<u64, ConvertError> {
    match found <= max {
        true => Ok(found),
        false => Err(ConvertError::Limit {
            what,
            place: shown(place),
            found,
            max,
        }),
    }
}

pub(crate) fn wrong_type(key: &str, keep: Keep, found: &'static str) -> Stop {
    Stop::Refused(ConvertError::WrongType {
        key: shown(key),
        expected: keep.name(),
        found,
    })
}
