//! What is offered: by the server, as `models/catalogue.json`, and by the publisher of the app, as
//! the signed `catalogue.json` beside the app.
//!
//! The publisher's is one Ed25519 signature of exactly the bytes that it stands beside. It has a
//! number that only grows: whoever can change files on the server, but has not the key, can take
//! the catalogue away and can neither change it nor bring back an old one.

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
    /// Where else the same bytes lie, in the order in which they are to be tried.
    #[serde(default)]
    pub others: Vec<PublishedSource>,
}

pub const PUBLISHED_SCHEMA: &str = "tinyrustlm.published-catalogue.v1";
/// What the signature is of, so that it can stand for nothing else.
const PUBLISHED_DOMAIN: &[u8] = b"tinyrustlm.published-catalogue.v1\n";

/// What the publisher signed; the file is a [`Signed`](crate::Signed) of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    pub schema: String,
    /// Greater in every later catalogue of the same publisher.
    pub number: u64,
    pub models: Vec<PublishedModel>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedModel {
    pub name: String,
    pub licence: Option<String>,
    pub root: Root,
    /// Bytes.
    pub length: u64,
    /// In the order in which they are to be tried.
    pub sources: Vec<PublishedSource>,
}

/// Addresses relative to the catalogue that names them; the publisher's lies beside the app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSource {
    pub url: String,
    pub pieces_url: String,
}

/// The bytes that the signature of a published catalogue is of.
pub fn catalogue_message(catalogue: &str) -> Vec<u8> {
    [PUBLISHED_DOMAIN, catalogue.as_bytes()].concat()
}
