//! The list of models that the publisher stands behind: `catalogue.json` of the checkout, checked
//! and signed.

use std::fs;
use std::path::Path;

use protocol::{PUBLISHED_SCHEMA, Published, Signed, catalogue_message};
use serde_json::value::RawValue;

use crate::error::{Result, XtaskError};
use crate::keys::Key;
use crate::places::Places;

/// In the checkout, and beside the app.
pub const FILE: &str = "catalogue.json";

pub fn sign(places: &Places, key: &Key, out: &Path) -> Result<()> {
    let path = places.root.join(FILE);
    let text = fs::read_to_string(&path).map_err(XtaskError::io(&path))?;
    let signed = signed(&text, key).map_err(|source| XtaskError::Json {
        path: path.clone(),
        source,
    })?;
    let out = out.join(FILE);
    fs::write(&out, signed + "\n").map_err(XtaskError::io(&out))
}

/// The file's text, if it is a list of this version.
fn signed(text: &str, key: &Key) -> serde_json::Result<String> {
    let list: Published = serde_json::from_str(text)?;
    if list.schema != PUBLISHED_SCHEMA {
        return Err(serde::de::Error::custom("the schema is another one"));
    }
    if list.models.iter().any(|model| model.sources.is_empty()) {
        return Err(serde::de::Error::custom("a model has no source"));
    }
    let text = serde_json::to_string(&list)?;
    let signature = key.sign(&catalogue_message(&text));
    let signed = RawValue::from_string(text)?;
    serde_json::to_string_pretty(&Signed { signed, signature })
}
