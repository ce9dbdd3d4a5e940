//! Notes of stored models, as they lie in the origin's small storage.

use protocol::StorageKind;
use serde::{Deserialize, Serialize};

use super::{FORM, ModelRecord, read};
use crate::error::AppError;
use crate::state::{Note, Notes};

#[derive(Serialize, Deserialize)]
struct NotesRecord {
    form: u32,
    storage: Option<StorageKind>,
    catalogue: u64,
    models: Vec<NoteRecord>,
}

#[derive(Serialize, Deserialize)]
struct NoteRecord {
    #[serde(flatten)]
    model: ModelRecord,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
}

pub fn notes_to_json(notes: &Notes) -> Result<String, AppError> {
    let models = notes.models().iter().map(|note| NoteRecord {
        model: note.id.into(),
        name: note.name.clone(),
        used: note.used,
    });
    let record = NotesRecord {
        form: FORM,
        storage: notes.storage(),
        catalogue: notes.catalogue,
        models: models.collect(),
    };
    serde_json::to_string(&record).map_err(|_| AppError::SavedWrite)
}

pub fn notes_from_json(json: &str) -> Result<Notes, AppError> {
    let record: NotesRecord = read(json)?;
    let models = record.models.into_iter().map(|note| Note {
        id: note.model.into(),
        name: note.name,
        used: note.used,
    });
    Ok(Notes::new(
        models.collect(),
        record.storage,
        record.catalogue,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of form 1, frozen.
    #[test]
    fn notes_of_an_earlier_build_are_read() {
        let root = "01".repeat(32);
        let kept = format!(
            "{{\"form\":1,\"storage\":\"Opfs\",\"catalogue\":3,\"models\":[{{\"root\":\"{root}\",\
             \"length\":98,\"name\":\"M\",\"used\":1764500000000}},{{\"root\":\"{root}\",\
             \"length\":99,\"name\":\"N\"}}]}}"
        );
        let notes = notes_from_json(&kept).unwrap();
        assert_eq!((notes.catalogue, notes.models().len()), (3, 2));
        assert_eq!(notes.models()[0].used, Some(1_764_500_000_000));
        assert_eq!(notes_to_json(&notes).unwrap(), kept);
        for wrong in ["", "{}", "[]", "{\"form\":9}"] {
            assert!(notes_from_json(wrong).is_err(), "{wrong}");
        }
    }
}
