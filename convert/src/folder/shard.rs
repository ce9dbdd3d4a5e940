//! Headers of safetensors files, and the index that says which file has which tensor.
//!
//! A header is a `u64` length and that many bytes of JSON: for every tensor its dtype, shape and
//! byte range after the header (safetensors format, README of the reference repository).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use format::{Codec, Shape};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::fields::{Entries, parse};
use crate::error::{ConvertError, shown};
use crate::limits;
use crate::plan::{SourceTensor, check_overlap, element_bytes};
use crate::step::SourceFile;

/// All tensors of a folder, and what the index says of them.
#[derive(Default)]
pub(crate) struct Shards {
    pub tensors: BTreeMap<String, SourceTensor>,
    /// File of each tensor; `None` without an index.
    index: Option<BTreeMap<String, String>>,
}

#[derive(serde::Deserialize)]
struct Index {
    weight_map: Entries<String>,
}

#[derive(serde::Deserialize)]
struct Described {
    dtype: String,
    shape: Dimensions,
    data_offsets: [u64; 2],
}

/// At most four of them, as no tensor has more.
struct Dimensions(Vec<u64>);

impl<'de> Deserialize<'de> for Dimensions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Dimensions, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Dimensions;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("up to four dimensions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Dimensions, A::Error> {
                let mut dimensions = Vec::new();
                while let Some(dimension) = list.next_element()? {
                    if dimensions.len() == limits::DIMENSIONS_MAX as usize {
                        return Err(A::Error::custom("too many dimensions"));
                    }
                    dimensions.push(dimension);
                }
                Ok(Dimensions(dimensions))
            }
        }
        deserializer.deserialize_seq(Collect)
    }
}

/// The tensors of one header; what stands under `__metadata__` is for people.
struct Header(Vec<(String, Described)>);

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Header, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut tensors = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else if tensors.len() as u64 == limits::TENSORS_MAX {
                        return Err(A::Error::custom("too many tensors"));
                    } else {
                        tensors.push((name, map.next_value()?));
                    }
                }
                Ok(Header(tensors))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl Shards {
    /// Gives the names of the shards, in order.
    pub fn parse_index(&mut self, bytes: &[u8]) -> Result<Vec<String>, ConvertError> {
        let index: Index = parse(super::INDEX, bytes)?;
        let mut map = BTreeMap::new();
        for (tensor, file) in index.weight_map.0 {
            let twice = || ConvertError::DuplicateTensor {
                tensor: shown(&tensor),
            };
            if map.contains_key(&tensor) {
                return Err(twice());
            }
            map.insert(tensor, file);
        }
        let names: BTreeSet<String> = map.values().cloned().collect();
        self.index = Some(map);
        Ok(names.into_iter().collect())
    }

    /// `json` is the header of `source`, which is file number `file`, without its length field.
    pub fn parse_header(
        &mut self,
        file: u32,
        source: &SourceFile,
        json: &[u8],
    ) -> Result<(), ConvertError> {
        let Header(header) = parse(&source.name, json)?;
        let data_start = 8 + json.len() as u64;
        let data_len = source.len - data_start;
        let ranges = header.iter().map(|(name, described)| {
            let [start, end] = described.data_offsets;
            (start, end, name.as_str())
        });
        check_overlap(ranges.collect())?;
        for (name, described) in header {
            if let Some(index) = &self.index
                && index.get(&name) != Some(&source.name)
            {
                return Err(ConvertError::IndexMismatch {
                    tensor: shown(&name),
                    file: shown(&source.name),
                });
            }
            let end = described.data_offsets[1];
            let (codec, shape) = described.check(&name)?;
            if end > data_len {
                return Err(ConvertError::Truncated {
                    file: shown(&source.name),
                    missing: end - data_len,
                    place: format!("tensor {:?}", shown(&name)),
                });
            }
            let tensor = SourceTensor {
                name: shown(&name),
                source: file,
                at: data_start + described.data_offsets[0],
                codec,
                shape,
            };
            if let Some(first) = self.tensors.insert(name, tensor) {
                let tensor = first.name;
                return Err(ConvertError::DuplicateTensor { tensor });
            }
        }
        if self.tensors.len() as u64 > limits::TENSORS_MAX {
            return Err(ConvertError::Limit {
                what: "tensor count",
                place: shown(&source.name),
                found: self.tensors.len() as u64,
                max: limits::TENSORS_MAX,
            });
        }
        Ok(())
    }

    /// Every tensor of the index must have been found.
    pub fn check_index(&self) -> Result<(), ConvertError> {
        let mut listed = self.index.iter().flatten();
        match listed.find(|(tensor, _)| !self.tensors.contains_key(*tensor)) {
            Some((tensor, file)) => Err(ConvertError::IndexMismatch {
                tensor: shown(tensor),
                file: shown(file),
            }),
            None => Ok(()),
        }
    }
}

impl Described {
    /// Codec and shape, if the byte range fits them.
    fn check(&self, name: &str) -> Result<(Codec, Shape), ConvertError> {
        let tensor = || shown(name);
        let codec = match self.dtype.as_str() {
            "F32" => Codec::F32,
            "F16" => Codec::F16,
            "BF16" => Codec::Bf16,
            other => {
                return Err(ConvertError::TensorDtype {
                    tensor: tensor(),
                    dtype: shown(other),
                });
            }
        };
        let (rows, cols) = match *self.shape.0.as_slice() {
            [cols] => (1, cols),
            [rows, cols] => (rows, cols),
            _ => return Err(ConvertError::BadDimensions { tensor: tensor() }),
        };
        if rows == 0 || cols == 0 {
            return Err(ConvertError::BadDimensions { tensor: tensor() });
        }
        let limit = |what, found, max| ConvertError::Limit {
            what,
            place: shown(name),
            found,
            max,
        };
        if cols > limits::COLUMNS_MAX {
            return Err(limit("columns", cols, limits::COLUMNS_MAX));
        }
        let rows32 = u32::try_from(rows).map_err(|_| limit("rows", rows, u32::MAX.into()))?;
        // Below 2^32 rows of at most 2^20 bytes.
        let expected = rows * cols * element_bytes(codec);
        let [start, end] = self.data_offsets;
        if end.checked_sub(start) != Some(expected) {
            return Err(ConvertError::ByteLength {
                tensor: tensor(),
                expected,
                found: end.saturating_sub(start),
            });
        }
        let cols = cols as u32;
        Ok((codec, Shape { rows: rows32, cols }))
    }
}
