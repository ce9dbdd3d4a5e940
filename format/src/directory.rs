//! The safetensors side of the header: named byte ranges, and the rules that hold for them
//! whatever the model is.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::error::{JsonText, excerpt};
use crate::json::Node;
use crate::manifest::check_name;
use crate::schema::read;
use crate::{FormatError, Layout, Shape, TENSORS_MAX, Tensor};

/// Every tensor starts at a multiple of this.
pub(crate) const ALIGNMENT: u64 = 64;
pub(crate) const FILLER_PREFIX: &str = "__pad.";
const METADATA_KEY: &str = "__metadata__";
pub(crate) const MANIFEST_KEY: &str = "slm.manifest";
const RANK_MAX: usize = 4;

/// The safetensors dtypes that occur in `.slm` files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Dtype {
    F32,
    F16,
    BF16,
    U8,
}

impl Dtype {
    fn bytes(self) -> u64 {
        match self {
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::BF16 => 2,
            Dtype::U8 => 1,
        }
    }
}

/// What safetensors says of one tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<u64>,
    /// First byte and the byte after the last, counted from the start of data.
    pub(crate) data_offsets: [u64; 2],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) stored: Stored,
}

impl Entry {
    /// How a tensor is stored that begins at `at` and has `len` bytes.
    pub(crate) fn of_tensor(tensor: &Tensor, at: u64) -> Entry {
        let len = tensor.range.end - tensor.range.start;
        let Shape { rows, cols } = tensor.shape;
        let matrix = [u64::from(rows), u64::from(cols)].to_vec();
        let (dtype, shape) = match tensor.layout {
            Layout::F32 => (Dtype::F32, matrix),
            Layout::F16 => (Dtype::F16, matrix),
            Layout::Bf16 => (Dtype::BF16, matrix),
            _ => (Dtype::U8, [len].to_vec()),
        };
        let stored = Stored {
            dtype,
            shape,
            data_offsets: [at, at + len],
        };
        Entry {
            name: tensor.name.clone(),
            stored,
        }
    }

    fn filler(number: usize, from: u64, to: u64) -> Entry {
        let (dtype, shape) = (Dtype::U8, [to - from].to_vec());
        let stored = Stored {
            dtype,
            shape,
            data_offsets: [from, to],
        };
        Entry {
            name: format!("{FILLER_PREFIX}{number}"),
            stored,
        }
    }
}

/// Entries in file order, fillers included. `data_start` is the first byte of data in the file.
pub(crate) fn entries(tensors: &[Tensor], data_start: u64) -> Vec<Entry> {
    let mut list = Vec::with_capacity(tensors.len() * 2);
    let (mut fillers, mut at) = (0, 0);
    for tensor in tensors {
        let start = tensor.range.start - data_start;
        if start > at {
            list.push(Entry::filler(fillers, at, start));
            fillers += 1;
        }
        list.push(Entry::of_tensor(tensor, start));
        at = tensor.range.end - data_start;
    }
    list
}

/// Reads the header's JSON: the manifest's text and the tensors, as they stand there.
pub(crate) fn read_map(text: &str) -> Result<(String, Vec<Entry>), FormatError> {
    let which = JsonText::Header;
    let Node::Map(map) = Node::parse(text, which)? else {
        return Err(FormatError::WrongValue {
            text: which,
            path: String::new(),
        });
    };
    let mut manifest = None;
    let mut list = Vec::new();
    for (key, node) in map {
        if key == METADATA_KEY {
            manifest = Some(read_metadata(node)?);
            continue;
        }
        check_name(&key)?;
        if list.len() >= 2 * TENSORS_MAX as usize {
            return Err(FormatError::TooManyTensors { max: TENSORS_MAX });
        }
        let stored: Stored = read(&node, which, &key)?;
        list.push(Entry { name: key, stored });
    }
    Ok((manifest.ok_or(FormatError::NoManifest)?, list))
}

fn read_metadata(node: Node) -> Result<String, FormatError> {
    let text = JsonText::Header;
    let wrong = |path: String| FormatError::WrongValue { text, path };
    let Node::Map(map) = node else {
        return Err(wrong(String::from(METADATA_KEY)));
    };
    let mut manifest = None;
    for (key, node) in map {
        match (key.as_str(), node) {
            (MANIFEST_KEY, Node::Text(text)) => manifest = Some(text),
            (MANIFEST_KEY, _) => return Err(wrong(format!("{METADATA_KEY}.{MANIFEST_KEY}"))),
            (other, _) => {
                let path = format!("{METADATA_KEY}.{}", excerpt(other));
                return Err(FormatError::UnknownField { text, path });
            }
        }
    }
    manifest.ok_or(FormatError::NoManifest)
}

/// Sorts the entries by offset and checks that they cover the data exactly, each byte once, each
/// tensor aligned and as long as its dtype and shape say.
pub(crate) fn check_ranges(
    list: &mut [Entry],
    data_start: u64,
    file_len: u64,
) -> Result<(), FormatError> {
    list.sort_by_key(|entry| entry.stored.data_offsets);
    let mut expected = 0;
    for Entry { name, stored } in list.iter() {
        let tensor = || name.clone();
        let [start, end] = stored.data_offsets;
        if end < start {
            return Err(FormatError::OffsetsReversed { tensor: tensor() });
        }
        let Some(file_end) = data_start.checked_add(end) else {
            return Err(FormatError::Overflow { tensor: tensor() });
        };
        if file_end > file_len {
            return Err(FormatError::BeyondEnd {
                tensor: tensor(),
                end: file_end,
                file_len,
            });
        }
        if start < expected {
            return Err(FormatError::Overlap {
                tensor: tensor(),
                expected,
                found: start,
            });
        }
        if start > expected {
            return Err(FormatError::Hole {
                tensor: tensor(),
                expected,
                found: start,
            });
        }
        if !start.is_multiple_of(ALIGNMENT) && !name.starts_with(FILLER_PREFIX) {
            return Err(FormatError::Misaligned {
                tensor: tensor(),
                at: start,
            });
        }
        check_length(name, stored)?;
        expected = end;
    }
    match data_start.saturating_add(expected) {
        data_end if data_end < file_len => Err(FormatError::TrailingBytes { data_end, file_len }),
        _ => Ok(()),
    }
}

fn check_length(name: &str, stored: &Stored) -> Result<(), FormatError> {
    let tensor = || String::from(name);
    if stored.shape.len() > RANK_MAX {
        let rank = u32::try_from(stored.shape.len()).unwrap_or(u32::MAX);
        return Err(FormatError::RankTooHigh {
            tensor: tensor(),
            rank,
        });
    }
    let mut needed = stored.dtype.bytes();
    for &dimension in &stored.shape {
        needed = match needed.checked_mul(dimension) {
            Some(needed) => needed,
            None => return Err(FormatError::Overflow { tensor: tensor() }),
        };
    }
    let [start, end] = stored.data_offsets;
    match end - start == needed {
        true => Ok(()),
        false => {
            let (expected, found) = (needed, end - start);
            Err(FormatError::ByteLength {
                tensor: tensor(),
                expected,
                found,
            })
        }
    }
}

/// Checks that `found` (in file order) is `expected`: same names, same order, stored the same.
pub(crate) fn check_same(expected: &[Entry], found: &[Entry]) -> Result<(), FormatError> {
    let names = |list: &[Entry]| {
        let mut names: Vec<String> = list.iter().map(|entry| entry.name.clone()).collect();
        names.sort_unstable();
        names
    };
    let (known, present) = (names(expected), names(found));
    if let Some(name) = known
        .iter()
        .find(|name| present.binary_search(name).is_err())
    {
        return Err(FormatError::MissingTensor {
            tensor: name.clone(),
        });
    }
    if let Some(name) = present
        .iter()
        .find(|name| known.binary_search(name).is_err())
    {
        return Err(FormatError::UnexpectedTensor {
            tensor: name.clone(),
        });
    }
    for (expected, found) in expected.iter().zip(found) {
        if expected.name != found.name {
            let (expected, found) = (expected.name.clone(), found.name.clone());
            return Err(FormatError::OutOfOrder { expected, found });
        }
        if expected.stored != found.stored {
            return Err(FormatError::StoredAs {
                tensor: found.name.clone(),
            });
        }
    }
    Ok(())
}

/// Spells the header's JSON. `list` is in file order.
pub(crate) fn spell(manifest: &str, list: &[Entry]) -> String {
    let quoted = |text: &str| serde_json::Value::from(text);
    let mut out = format!(
        "{{\"{METADATA_KEY}\":{{\"{MANIFEST_KEY}\":{}}}",
        quoted(manifest)
    );
    for Entry { name, stored } in list {
        let Stored {
            dtype,
            shape,
            data_offsets: [start, end],
        } = stored;
        let shape: Vec<String> = shape
            .iter()
            .map(|dimension| format!("{dimension}"))
            .collect();
        out.push_str(&format!(
            ",{}:{{\"dtype\":\"{dtype:?}\",\"shape\":[{}],\"data_offsets\":[{start},{end}]}}",
            quoted(name),
            shape.join(",")
        ));
    }
    out.push('}');
    out
}
