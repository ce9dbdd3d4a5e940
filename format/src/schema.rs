//! A JSON tree to Rust values, with errors that say which field of which text is wrong.
//!
//! The derived `Deserialize` of the manifest runs on this instead of on `serde_json`, because an
//! error there is a sentence and here it is a [`FormatError`].

use alloc::format;
use alloc::string::String;
use core::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::FormatError;
use crate::error::{JsonText, excerpt};
use crate::json::Node;

/// Reads a whole value; `place` is what the error's path starts with.
pub(crate) fn read<'a, T: Deserialize<'a>>(
    node: &'a Node,
    which: JsonText,
    place: &str,
) -> Result<T, FormatError> {
    T::deserialize(At(node)).map_err(|error| {
        let wrong = if place.is_empty() {
            error
        } else {
            error.within(place)
        };
        wrong.into_format_error(which)
    })
}

#[derive(Debug)]
enum Problem {
    UnknownField,
    MissingField,
    UnknownValue(String),
    WrongValue,
}

#[derive(Debug)]
struct Wrong {
    problem: Problem,
    path: String,
}

impl Wrong {
    fn value() -> Wrong {
        Wrong {
            problem: Problem::WrongValue,
            path: String::new(),
        }
    }

    fn within(mut self, outer: &str) -> Wrong {
        let outer = excerpt(outer);
        self.path = match self.path.is_empty() {
            true => outer,
            false => format!("{outer}.{}", self.path),
        };
        self
    }

    fn into_format_error(self, text: JsonText) -> FormatError {
        let path = self.path;
        match self.problem {
            Problem::UnknownField => FormatError::UnknownField { text, path },
            Problem::MissingField => FormatError::MissingField { text, path },
            Problem::UnknownValue(found) => FormatError::UnknownValue { text, path, found },
            Problem::WrongValue => FormatError::WrongValue { text, path },
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.problem, self.path)
    }
}

impl core::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(_: T) -> Wrong {
        Wrong::value()
    }

    fn invalid_type(_: Unexpected<'_>, _: &dyn Expected) -> Wrong {
        Wrong::value()
    }

    fn unknown_variant(variant: &str, _: &'static [&'static str]) -> Wrong {
        Wrong {
            problem: Problem::UnknownValue(excerpt(variant)),
            path: String::new(),
        }
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Wrong {
        Wrong {
            problem: Problem::UnknownField,
            path: excerpt(field),
        }
    }

    fn missing_field(field: &'static str) -> Wrong {
        Wrong {
            problem: Problem::MissingField,
            path: String::from(field),
        }
    }
}

/// One node, as something to deserialize from.
#[derive(Clone, Copy)]
struct At<'a>(&'a Node);

impl<'de> Deserializer<'de> for At<'de> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.0 {
            Node::Null => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(*value),
            Node::Unsigned(value) => visitor.visit_u64(*value),
            Node::Signed(value) => visitor.visit_i64(*value),
            Node::Float(value) => visitor.visit_f64(*value),
            Node::Text(value) => visitor.visit_borrowed_str(value),
            Node::List(nodes) => {
                let mut elements = Elements { nodes, next: 0 };
                let value = visitor.visit_seq(&mut elements)?;
                // Tuples read their own number of elements and stop.
                match elements.next == nodes.len() {
                    true => Ok(value),
                    false => Err(Wrong::value()),
                }
            }
            Node::Map(entries) => visitor.visit_map(Entries {
                entries,
                value: None,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.0 {
            Node::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    /// Structs are objects; the derived code would take a list, too.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.0 {
            Node::Map(_) => self.deserialize_any(visitor),
            _ => Err(Wrong::value()),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.0 {
            Node::Text(name) => {
                let name: StrDeserializer<'de, Wrong> = name.as_str().into_deserializer();
                visitor.visit_enum(name)
            }
            Node::Map(entries) if entries.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Entries {
                    entries,
                    value: None,
                }))
            }
            _ => Err(Wrong::value()),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Elements<'a> {
    nodes: &'a [Node],
    next: usize,
}

impl<'a> SeqAccess<'a> for &mut Elements<'a> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'a>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        let Some(node) = self.nodes.get(self.next) else {
            return Ok(None);
        };
        let index = self.next;
        self.next += 1;
        seed.deserialize(At(node))
            .map(Some)
            .map_err(|wrong| wrong.within(&format!("{index}")))
    }
}

struct Entries<'a> {
    entries: &'a [(String, Node)],
    /// The entry whose key was handed out last.
    value: Option<&'a (String, Node)>,
}

impl<'a> MapAccess<'a> for Entries<'a> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'a>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        let Some((first, rest)) = self.entries.split_first() else {
            return Ok(None);
        };
        self.entries = rest;
        self.value = Some(first);
        let key: StrDeserializer<'a, Wrong> = first.0.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let Some((key, node)) = self.value.take() else {
            return Err(Wrong::value());
        };
        seed.deserialize(At(node))
            .map_err(|wrong| wrong.within(key))
    }
}
