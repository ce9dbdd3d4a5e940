//! Models for tests: small ones from a formula, and the real one.

use std::path::PathBuf;

use format::{Hasher, Header, ModelId, PieceLayer};
use protocol::CatalogueEntry;
use runtime::tiny::Recipe;

/// A `.slm` file and its identity.
#[derive(Clone)]
pub struct Stored {
    pub file: Vec<u8>,
    pub layer: PieceLayer,
    pub url: String,
}

impl Stored {
    pub fn new(url: &str, file: Vec<u8>) -> Stored {
        let mut hasher = Hasher::default();
        hasher.update(&file);
        Stored {
            layer: hasher.finish(),
            file,
            url: url.into(),
        }
    }

    pub fn id(&self) -> ModelId {
        self.layer.id
    }

    pub fn entry(&self) -> CatalogueEntry {
        CatalogueEntry {
            name: self.url.clone(),
            licence: None,
            root: self.id().root,
            length: self.id().length,
            url: self.url.clone(),
            pieces_url: self.pieces_url(),
            others: Vec::new(),
        }
    }

    pub fn pieces_url(&self) -> String {
        format!("{}.pieces", self.url)
    }

    pub fn header(&self) -> Header {
        let first = self.file.first_chunk().expect("a header");
        let len = format::header_len(*first, self.file.len() as u64).expect("a header");
        Header::parse(&self.file[..len as usize], self.file.len() as u64).expect("a header")
    }
}

/// A bare model of one piece that computes something.
pub fn small() -> Stored {
    let (_, file) = Recipe::QUANTIZED.file().expect("the recipe is sound");
    Stored::new("small.slm", file)
}

/// A bare model of 13 pieces: an embedding of many rows.
pub fn wide() -> Stored {
    let (header, _) = Recipe::FLOAT.file().expect("the recipe is sound");
    let mut manifest = header.manifest;
    manifest.name = "wide".into();
    manifest.architecture.vocab = 100_000;
    let embed = manifest.tensors.get_mut("embed").expect("an embedding");
    embed.shape.rows = 100_000;
    let header = Header::layout(manifest).expect("the manifest is sound");
    let mut file = header.to_bytes();
    file.resize(header.file_len as usize, 0);
    let embed = header.tensor("embed").expect("an embedding").range.clone();
    let embed = &mut file[embed.start as usize..embed.end as usize];
    for (index, four) in embed.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        // No two pieces are alike, and no weight is large.
        let weight = (index.wrapping_mul(2_654_435_761) % 10_007) as f32 / 100_070.0;
        *four = weight.to_le_bytes();
    }
    Stored::new("wide.slm", file)
}

/// The real model's source file.
pub fn smollm2() -> Vec<u8> {
    let folder = std::env::var_os("TINYRUSTLM_MODELS").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| {
        let home = std::env::var_os("HOME").expect("a home folder");
        PathBuf::from(home).join(".cache/tinyrustlm/models")
    });
    let path = folder.join("SmolLM2-135M-Instruct.Q4_1.gguf");
    std::fs::read(path).expect("run ./test, which fetches the model")
}

/// The head of a GGUF file (version 3, no tensors) that names an architecture, as the GGUF
/// specification lays it out.
pub fn gguf_of_family(family: &str) -> Vec<u8> {
    let mut file = b"GGUF".to_vec();
    file.extend(3u32.to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.extend(1u64.to_le_bytes());
    let text = |file: &mut Vec<u8>, text: &str| {
        file.extend((text.len() as u64).to_le_bytes());
        file.extend(text.as_bytes());
    };
    text(&mut file, "general.architecture");
    // Value type 8 is a string.
    file.extend(8u32.to_le_bytes());
    text(&mut file, family);
    file
}
