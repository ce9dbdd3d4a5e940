//! The tensors of a GGUF file: types, shapes, and byte ranges that do not collide.

use format::{BLOCK, Codec, Shape};

use crate::error::{ConvertError, shown};
use crate::limits;
use crate::plan::{SourceTensor, check_overlap, element_bytes};

/// Tensor types that no conversion takes, so that a refusal can name them. By number, from
/// `enum ggml_type`; gaps are numbers that were given up.
const OTHER_TYPES: &[(u32, &str)] = &[
    (4, "Q4_2"),
    (5, "Q4_3"),
    (6, "Q5_0"),
    (7, "Q5_1"),
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (12, "Q4_K"),
    (13, "Q5_K"),
    (14, "Q6_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
];

/// One tensor's description, checked for itself.
#[derive(Debug)]
pub(crate) struct Entry {
    name: String,
    shape: Shape,
    codec: Codec,
    /// Offset from the start of the data section.
    offset: u64,
    bytes: u64,
    /// Index of the file, and where its data section starts.
    source: u32,
    data_start: u64,
}

/// All tensors of a file, in the order of their names.
#[derive(Debug)]
pub(crate) struct Directory {
    entries: Vec<Entry>,
}

impl Entry {
    /// `dims` run from the fastest to the slowest: columns, rows, then what must be one.
    pub fn new(name: &str, dims: [u64; 4], kind: u32, offset: u64) -> Result<Entry, ConvertError> {
        let tensor = || shown(name);
        let codec = codec(kind).ok_or_else(|| ConvertError::TensorType {
            tensor: tensor(),
            id: kind,
            name: type_name(kind),
        })?;
        let [columns, rows, depth, batch] = dims;
        if columns == 0 || rows == 0 || depth != 1 || batch != 1 {
            return Err(ConvertError::BadDimensions { tensor: tensor() });
        }
        let limit = |what, found, max| ConvertError::Limit {
            what,
            place: shown(name),
            found,
            max,
        };
        if columns > limits::COLUMNS_MAX {
            return Err(limit("columns", columns, limits::COLUMNS_MAX));
        }
        let rows32 = u32::try_from(rows).map_err(|_| limit("rows", rows, u32::MAX.into()))?;
        let row_bytes = match codec.block_bytes() {
            None => columns * element_bytes(codec),
            Some(block) if columns.is_multiple_of(BLOCK.into()) => {
                columns / u64::from(BLOCK) * u64::from(block)
            }
            Some(_) => {
                let tensor = tensor();
                return Err(ConvertError::PartialBlock { tensor, columns });
            }
        };
        Ok(Entry {
            name: name.into(),
            shape: Shape {
                rows: rows32,
                cols: columns as u32,
            },
            codec,
            offset,
            // Below 2^32 rows of at most 2^20 bytes.
            bytes: rows * row_bytes,
            source: 0,
            data_start: 0,
        })
    }
}

fn codec(kind: u32) -> Option<Codec> {
    match kind {
        0 => Some(Codec::F32),
        1 => Some(Codec::F16),
        2 => Some(Codec::Q4_0),
        3 => Some(Codec::Q4_1),
        8 => Some(Codec::Q8_0),
        30 => Some(Codec::Bf16),
        _ => None,
    }
}

fn type_name(kind: u32) -> &'static str {
    let known = OTHER_TYPES.iter().find(|(id, _)| *id == kind);
    known.map_or("unknown", |(_, name)| name)
}

impl Directory {
    /// Checks the entries against each other and against the file, given by name and length.
    pub fn new(
        mut entries: Vec<Entry>,
        header_end: u64,
        alignment: u64,
        (file, file_len): (&str, u64),
    ) -> Result<Directory, ConvertError> {
        if !alignment.is_power_of_two() || alignment > limits::ALIGNMENT_MAX {
            return Err(ConvertError::BadValue {
                key: "general.alignment".into(),
                found: alignment.to_string(),
                expected: "a power of two up to 1048576",
            });
        }
        let data_start = header_end.next_multiple_of(alignment);
        for entry in &mut entries {
            entry.data_start = data_start;
        }
        sort(&mut entries)?;
        for entry in &entries {
            if !entry.offset.is_multiple_of(alignment) {
                let (tensor, offset) = (shown(&entry.name), entry.offset);
                return Err(ConvertError::MisalignedTensor {
                    tensor,
                    offset,
                    alignment,
                });
            }
        }
        let range = |entry: &Entry| (entry.offset, entry.offset.saturating_add(entry.bytes));
        let ranges = entries.iter().map(|entry| {
            let (start, end) = range(entry);
            (start, end, entry.name.as_str())
        });
        check_overlap(ranges.collect())?;
        // None overlap, so the last one by offset ends last.
        if let Some(last) = entries.iter().max_by_key(|entry| entry.offset) {
            let end = u128::from(data_start) + u128::from(last.offset) + u128::from(last.bytes);
            if end > u128::from(file_len) {
                let missing = u64::try_from(end - u128::from(file_len)).unwrap_or(u64::MAX);
                return Err(ConvertError::Truncated {
                    file: shown(file),
                    missing,
                    place: format!("tensor {:?}", shown(&last.name)),
                });
            }
        }
        Ok(Directory { entries })
    }

    /// All tensors of several files, given by index.
    pub fn join(parts: Vec<(u32, Directory)>) -> Result<Directory, ConvertError> {
        let mut entries = Vec::new();
        for (source, part) in parts {
            entries.extend(
                part.entries
                    .into_iter()
                    .map(|entry| Entry { source, ..entry }),
            );
        }
        sort(&mut entries)?;
        Ok(Directory { entries })
    }

    pub fn find(&self, name: &str) -> Option<SourceTensor> {
        let index = self
            .entries
            .binary_search_by(|entry| entry.name.as_str().cmp(name))
            .ok()?;
        let entry = &self.entries[index];
        Some(SourceTensor {
            name: entry.name.clone(),
            source: entry.source,
            at: entry.data_start + entry.offset,
            codec: entry.codec,
            shape: entry.shape,
        })
    }

    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

/// By name; no name stands twice.
fn sort(entries: &mut [Entry]) -> Result<(), ConvertError> {
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    match entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => {
            let tensor = shown(&pair[0].name);
            Err(ConvertError::DuplicateTensor { tensor })
        }
        None => Ok(()),
    }
}
