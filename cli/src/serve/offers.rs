//! What a folder of models offers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use axum::body::Bytes;
use format::{Header, PieceLayer};
use protocol::{CATALOGUE_SCHEMA, Catalogue, CatalogueEntry};

use crate::failure::Failure;

pub struct Offers {
    pub catalogue: Catalogue,
    /// The catalogue as it is sent.
    pub json: Bytes,
    /// Model files by name in the address.
    pub files: BTreeMap<String, PathBuf>,
    /// Piece hashes by name in the address.
    pub pieces: BTreeMap<String, Bytes>,
}

impl Offers {
    pub fn none() -> Offers {
        let catalogue = Catalogue {
            schema: CATALOGUE_SCHEMA.into(),
            models: Vec::new(),
        };
        Offers::new(catalogue, BTreeMap::new(), BTreeMap::new())
    }

    /// Reads and hashes every `.slm` file of the folder. A damaged file is named and left out.
    pub fn collect(folder: &Path) -> Result<Offers, Failure> {
        let listing = std::fs::read_dir(folder).map_err(|error| Failure::file(folder, &error))?;
        let mut paths: Vec<PathBuf> = listing
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "slm"));
        paths.sort();
        let mut models = Vec::new();
        let mut files = BTreeMap::new();
        let mut pieces = BTreeMap::new();
        for path in paths {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            match read(&path) {
                Err(failure) => eprintln!("{name} is not offered: {failure}"),
                Ok((header, layer)) => {
                    let pieces_url = format!("{name}.pieces");
                    pieces.insert(pieces_url.clone(), Bytes::from(layer.to_bytes()));
                    files.insert(name.to_owned(), path.clone());
                    models.push(CatalogueEntry {
                        name: header.manifest.name,
                        licence: header.manifest.licence,
                        root: layer.id.root,
                        length: layer.id.length,
                        url: name.to_owned(),
                        pieces_url,
                        others: Vec::new(),
                    });
                }
            }
        }
        let catalogue = Catalogue {
            schema: CATALOGUE_SCHEMA.into(),
            models,
        };
        Ok(Offers::new(catalogue, files, pieces))
    }

    fn new(
        catalogue: Catalogue,
        files: BTreeMap<String, PathBuf>,
        pieces: BTreeMap<String, Bytes>,
    ) -> Offers {
        let json = serde_json::json!(catalogue).to_string();
        Offers {
            catalogue,
            json: Bytes::from(json),
            files,
            pieces,
        }
    }
}

/// The checked header, and the identity of all bytes.
fn read(path: &Path) -> Result<(Header, PieceLayer), Failure> {
    let header = crate::model::read_header(path)?;
    let layer = crate::model::hash_file(path)?;
    Ok((header, layer))
}
