//! What a server offers: JSON beside the models, named `catalogue.json`.

use alloc::string::String;
use alloc::vec::Vec;

use format::Root;
use serde::{Deserialize, Serialize};

pub const CATALOGUE_SCHEMA: &str = "tinyrustlm.catalogue.v1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    pub schema: String,
    pub models: Vec<CatalogueEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueEntry {
    pub name: String,
    pub licence: Option<String>,
    pub root: Root,
    /// Bytes.
    pub length: u64,
    /// Address of the `.slm` file, relative to the catalogue.
    pub url: String,
    /// Address of the `.slm.pieces` file, relative to the catalogue.
    pub pieces_url: String,
}
