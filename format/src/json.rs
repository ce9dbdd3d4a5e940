//! JSON text to a tree, strictly: no key twice at any level, bounded depth and size.
//!
//! A generic reader keeps the last of two equal keys, so two programs may see two models in one
//! file. Here that is a refusal.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

use crate::FormatError;
use crate::error::{JsonText, excerpt};

/// Enough for 65,536 tensors and as many fillers at about 11 values each.
pub(crate) const JSON_VALUES_MAX: u32 = 2_000_000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// Keys are distinct; order as in the text.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Parses one JSON value. Depth is limited to 127 by `serde_json`.
    pub(crate) fn parse(text: &str, which: JsonText) -> Result<Node, FormatError> {
        let mut reader = Reader {
            which,
            values: 0,
            refusal: None,
        };
        let mut json = serde_json::Deserializer::from_str(text);
        let node = (&mut reader).deserialize(&mut json);
        let node = node.and_then(|node| json.end().map(|()| node));
        node.map_err(|error| match reader.refusal {
            Some(refusal) => refusal,
            None => FormatError::NotJson {
                text: which,
                line: error.line() as u64,
                column: error.column() as u64,
            },
        })
    }
}

/// `serde_json` errors cannot carry ours, so ours waits here until the reader has unwound.
struct Reader {
    which: JsonText,
    values: u32,
    refusal: Option<FormatError>,
}

impl Reader {
    fn refuse<E: Error>(&mut self, refusal: FormatError) -> E {
        self.refusal.get_or_insert(refusal);
        E::custom("refused")
    }
}

impl<'de> DeserializeSeed<'de> for &mut Reader {
    type Value = Node;

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<Node, D::Error> {
        self.values += 1;
        if self.values > JSON_VALUES_MAX {
            let refusal = FormatError::JsonTooManyValues {
                text: self.which,
                max: JSON_VALUES_MAX,
            };
            return Err(self.refuse(refusal));
        }
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Reader {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Unsigned(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Signed(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(String::from(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element_seed(&mut *self)? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            entries.push((key, map.next_value_seed(&mut *self)?));
        }
        let mut keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            let key = excerpt(pair[0]);
            return Err(self.refuse(FormatError::DuplicateKey {
                text: self.which,
                key,
            }));
        }
        Ok(Node::Map(entries))
    }
}
