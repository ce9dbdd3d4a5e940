//! JSON objects of which no key stands twice, with getters that name the key they complain about.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;

use crate::error::{ConvertError, shown};
use crate::limits::TENSORS_MAX;

/// The entries of a JSON object in the order of the text, repeats included; no more than a model
/// has tensors.
pub(crate) struct Entries<V>(pub Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Entries<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Collect<V> {
            type Value = Entries<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<V>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    if entries.len() as u64 == TENSORS_MAX {
                        return Err(A::Error::custom("too many entries"));
                    }
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Collect(PhantomData))
    }
}

/// Parses a JSON text.
pub(crate) fn parse<'a, T: Deserialize<'a>>(
    file: &str,
    bytes: &'a [u8],
) -> Result<T, ConvertError> {
    serde_json::from_slice(bytes).map_err(|error| ConvertError::BadJson {
        file: shown(file),
        line: error.line() as u64,
        column: error.column() as u64,
    })
}

/// A configuration object. `null` is the same as a missing key.
pub(crate) struct Fields {
    values: BTreeMap<String, Value>,
}

impl Fields {
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Fields, ConvertError> {
        let Entries(entries) = parse(file, bytes)?;
        let mut values = BTreeMap::new();
        for (key, value) in entries {
            let twice = ConvertError::DuplicateKey { key: shown(&key) };
            if values.insert(key, value).is_some() {
                return Err(twice);
            }
        }
        Ok(Fields { values })
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key).filter(|value| !value.is_null())
    }

    /// The key stands there, if only as `null`.
    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The keys that are set to something.
    pub fn set(&self) -> impl Iterator<Item = (&str, &Value)> {
        let pairs = self.values.iter().map(|(key, value)| (key.as_str(), value));
        pairs.filter(|(_, value)| !value.is_null())
    }

    pub fn object(&self, key: &str) -> Result<Option<Fields>, ConvertError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Fields {
                values: map.clone().into_iter().collect(),
            })),
            Some(other) => Err(wrong_type(key, "an object", other)),
        }
    }

    pub fn text(&self, key: &str) -> Result<Option<&str>, ConvertError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(key, "a text", other)),
        }
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, ConvertError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(wrong_type(key, "a flag", other)),
        }
    }

    pub fn real(&self, key: &str) -> Result<Option<f64>, ConvertError> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(real) => Ok(Some(real)),
                None => Err(wrong_type(key, "a number", value)),
            },
        }
    }

    pub fn need_real(&self, key: &'static str) -> Result<f64, ConvertError> {
        self.real(key)?.ok_or(ConvertError::MissingKey { key })
    }

    pub fn count(&self, key: &str) -> Result<Option<u32>, ConvertError> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => whole(value)
                .map(Some)
                .ok_or_else(|| wrong_type(key, "a whole number below 2^32", value)),
        }
    }

    pub fn need_count(&self, key: &'static str) -> Result<u32, ConvertError> {
        self.count(key)?.ok_or(ConvertError::MissingKey { key })
    }

    /// A token id, or several. Negative ids mean "none" in some checkpoints.
    pub fn ids(&self, key: &str) -> Result<Vec<u32>, ConvertError> {
        let list = match self.get(key) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list.as_slice(),
            Some(value) => std::slice::from_ref(value),
        };
        let mut ids = Vec::new();
        for value in list {
            match (whole(value), value.as_i64()) {
                (Some(id), _) => ids.push(id),
                (None, Some(..0)) => {}
                _ => return Err(wrong_type(key, "token ids", value)),
            }
        }
        Ok(ids)
    }
}

/// A number below 2^32 without a fraction; some writers put whole numbers as `64.0`.
fn whole(value: &Value) -> Option<u32> {
    if let Some(whole) = value.as_u64() {
        return u32::try_from(whole).ok();
    }
    let real = value.as_f64()?;
    let exact = (0.0..=f64::from(u32::MAX)).contains(&real) && real.fract() == 0.0;
    exact.then_some(real as u32)
}

fn wrong_type(key: &str, expected: &'static str, found: &Value) -> ConvertError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a flag",
        Value::Number(_) => "another number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    let key = shown(key);
    ConvertError::WrongType {
        key,
        expected,
        found,
    }
}
