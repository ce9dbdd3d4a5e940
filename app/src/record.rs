//! What is kept between visits, as JSON. Plain text on purpose: a person can read and carry it.

mod notes;

use format::{Digest, ModelId, Root};
use protocol::{Figures, Finish, ImportSource, Role, TrResult};
use serde::{Deserialize, Serialize};

use crate::error::AppError;
pub use notes::{notes_from_json, notes_to_json};

use crate::state::{Conversation, ConversationId, End, Settings, Turn, TurnEnd};

/// Raised when an older build could no longer read what this one writes.
const FORM: u32 = 1;

#[derive(Serialize, Deserialize)]
struct ConversationRecord {
    form: u32,
    id: u64,
    title: String,
    updated: u64,
    /// Counts the writes, and says which tab made the last one.
    #[serde(default, skip_serializing_if = "is_zero")]
    revision: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    writer: u64,
    turns: Vec<TurnRecord>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Who wrote a record last, and which write it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    pub revision: u64,
    pub writer: u64,
}

#[derive(Serialize, Deserialize)]
struct TurnRecord {
    role: Role,
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<EndRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EndRecord {
    Finished { finish: Finish, figures: Figures },
    Failed(TrResult),
    Interrupted,
}

#[derive(Serialize, Deserialize)]
struct SettingsRecord {
    form: u32,
    temperature: f32,
    top_p: f32,
    max_new: u32,
    seed: Option<u64>,
    system: String,
    /// Absent in earlier records.
    #[serde(default)]
    keep: bool,
    /// Absent in earlier records.
    #[serde(default)]
    ice_servers: String,
    last_model: Option<ModelRecord>,
}

#[derive(Serialize, Deserialize)]
struct ModelRecord {
    root: Digest,
    length: u64,
}

/// Only the form, so that a newer record is told from a damaged one.
#[derive(Deserialize)]
struct FormOnly {
    form: u32,
}

pub fn conversation_to_json(conversation: &Conversation, stamp: Stamp) -> Result<String, AppError> {
    let record = ConversationRecord {
        form: FORM,
        id: conversation.id.0,
        title: conversation.title.clone(),
        updated: conversation.updated,
        revision: stamp.revision,
        writer: stamp.writer,
        turns: conversation.turns.iter().map(TurnRecord::from).collect(),
    };
    serde_json::to_string(&record).map_err(|_| AppError::SavedWrite)
}

pub fn conversation_from_json(json: &str) -> Result<Conversation, AppError> {
    let record: ConversationRecord = read(json)?;
    Ok(Conversation {
        id: ConversationId(record.id),
        title: record.title,
        updated: record.updated,
        revision: record.revision,
        turns: record.turns.into_iter().map(Turn::from).collect(),
    })
}

/// Of a record that may be of any form; nothing is known of one that cannot be read.
pub fn stamp_of(json: &str) -> Stamp {
    let record: Result<ConversationRecord, AppError> = read(json);
    record.map_or_else(
        |_| Stamp::default(),
        |record| Stamp {
            revision: record.revision,
            writer: record.writer,
        },
    )
}

pub fn settings_to_json(settings: &Settings) -> Result<String, AppError> {
    let record = SettingsRecord {
        form: FORM,
        temperature: settings.temperature,
        top_p: settings.top_p,
        max_new: settings.max_new,
        seed: settings.seed,
        system: settings.system.clone(),
        keep: settings.keep,
        ice_servers: settings.ice_servers.clone(),
        last_model: settings.last_model.map(ModelRecord::from),
    };
    serde_json::to_string(&record).map_err(|_| AppError::SavedWrite)
}

pub fn settings_from_json(json: &str) -> Result<Settings, AppError> {
    let record: SettingsRecord = read(json)?;
    let settings = Settings {
        temperature: record.temperature,
        top_p: record.top_p,
        max_new: record.max_new,
        seed: record.seed,
        system: record.system,
        keep: record.keep,
        ice_servers: record.ice_servers,
        last_model: record.last_model.map(ModelId::from),
    };
    if settings.valid() {
        Ok(settings)
    } else {
        Err(AppError::RecordDamaged)
    }
}

pub fn model_to_json(model: ModelId) -> Result<String, AppError> {
    serde_json::to_string(&ModelRecord::from(model)).map_err(|_| AppError::SavedWrite)
}

pub fn import_to_json(source: &ImportSource) -> Result<String, AppError> {
    serde_json::to_string(source).map_err(|_| AppError::SavedWrite)
}

pub fn import_from_json(json: &str) -> Result<ImportSource, AppError> {
    serde_json::from_str(json).map_err(|_| AppError::RecordDamaged)
}

pub fn model_from_json(json: &str) -> Result<ModelId, AppError> {
    let record: ModelRecord = serde_json::from_str(json).map_err(|_| AppError::RecordDamaged)?;
    Ok(record.into())
}

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, AppError> {
    let FormOnly { form } = serde_json::from_str(json).map_err(|_| AppError::RecordDamaged)?;
    if form > FORM {
        return Err(AppError::RecordNewer {
            found: form,
            known: FORM,
        });
    }
    serde_json::from_str(json).map_err(|_| AppError::RecordDamaged)
}

impl From<&Turn> for TurnRecord {
    fn from(turn: &Turn) -> TurnRecord {
        let end = turn.end.as_ref();
        TurnRecord {
            role: turn.role,
            text: turn.text.clone(),
            model: end.map(|end| end.model.clone()),
            seed: end.map(|end| end.seed),
            end: end.map(|end| match end.end {
                End::Finished { finish, figures } => EndRecord::Finished { finish, figures },
                End::Failed(code) => EndRecord::Failed(code),
                End::Interrupted => EndRecord::Interrupted,
            }),
        }
    }
}

impl From<TurnRecord> for Turn {
    fn from(record: TurnRecord) -> Turn {
        let end = record.end.map(|end| TurnEnd {
            model: record.model.unwrap_or_default(),
            seed: record.seed.unwrap_or_default(),
            end: match end {
                EndRecord::Finished { finish, figures } => End::Finished { finish, figures },
                EndRecord::Failed(code) => End::Failed(code),
                EndRecord::Interrupted => End::Interrupted,
            },
        });
        Turn {
            role: record.role,
            text: record.text,
            end,
        }
    }
}

impl From<ModelId> for ModelRecord {
    fn from(id: ModelId) -> ModelRecord {
        ModelRecord {
            root: id.root.0,
            length: id.length,
        }
    }
}

impl From<ModelRecord> for ModelId {
    fn from(record: ModelRecord) -> ModelId {
        ModelId {
            root: Root(record.root),
            length: record.length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of form 1, frozen: a build that cannot read them loses people's conversations.
    const KEPT: &str = r#"{"form":1,"id":1764500000000,"title":"Hi","updated":1764500000123,"turns":[{"role":"user","text":"Hi"},{"role":"assistant","text":"Hello <b>","model":"M","seed":18446744073709551615,"end":{"finished":{"finish":"Stop","figures":{"prompt_tokens":9,"reused_tokens":0,"new_tokens":3,"prefill_ms":12.5,"decode_ms":60.0}}}},{"role":"user","text":"More"},{"role":"assistant","text":"","model":"M","seed":1,"end":{"failed":"ContextExceeded"}}]}"#;

    fn kept() -> Conversation {
        let turn = |role, text: &str, end| Turn {
            role,
            text: text.into(),
            end,
        };
        let figures = Figures {
            prompt_tokens: 9,
            new_tokens: 3,
            prefill_ms: 12.5,
            decode_ms: 60.0,
            ..Figures::default()
        };
        let finished = End::Finished {
            finish: Finish::Stop,
            figures,
        };
        let end = |seed, end| {
            Some(TurnEnd {
                model: "M".into(),
                seed,
                end,
            })
        };
        Conversation {
            id: ConversationId(1_764_500_000_000),
            title: "Hi".into(),
            updated: 1_764_500_000_123,
            revision: 0,
            turns: vec![
                turn(Role::User, "Hi", None),
                turn(Role::Assistant, "Hello <b>", end(u64::MAX, finished)),
                turn(Role::User, "More", None),
                turn(
                    Role::Assistant,
                    "",
                    end(1, End::Failed(TrResult::ContextExceeded)),
                ),
            ],
        }
    }

    #[test]
    fn a_conversation_is_kept_as_these_bytes() {
        assert_eq!(
            conversation_to_json(&kept(), Stamp::default()).unwrap(),
            KEPT
        );
        assert_eq!(conversation_from_json(KEPT).unwrap(), kept());
    }

    #[test]
    fn settings_come_back_as_they_were() {
        let mut settings = Settings {
            seed: Some(u64::MAX),
            keep: true,
            ice_servers: "stun:example.org".into(),
            ..Settings::default()
        };
        settings.last_model = Some(ModelId {
            root: Root(Digest([7; 32])),
            length: 98_362_432,
        });
        let json = settings_to_json(&settings).unwrap();
        assert_eq!(settings_from_json(&json).unwrap(), settings);
        // As it was written before there were such choices.
        let earlier = json.replace(",\"keep\":true", "");
        let earliest = earlier.replace(",\"ice_servers\":\"stun:example.org\"", "");
        assert!(earliest.len() < earlier.len() && earlier.len() < json.len());
        let settings = settings_from_json(&earliest).unwrap();
        assert!(!settings.keep && settings.ice_servers.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_told_apart() {
        let newer = KEPT.replace("\"form\":1", "\"form\":2,\"more\":0");
        let newer_error = AppError::RecordNewer { found: 2, known: 1 };
        assert_eq!(conversation_from_json(&newer), Err(newer_error));
        for damaged in ["", "{}", "[1]", &KEPT[..200], &KEPT.replace("user", "root")] {
            assert_eq!(
                conversation_from_json(damaged),
                Err(AppError::RecordDamaged),
                "{damaged}"
            );
        }
        let hot = settings_to_json(&Settings {
            temperature: 9.0,
            ..Settings::default()
        })
        .unwrap();
        assert_eq!(settings_from_json(&hot), Err(AppError::RecordDamaged));
    }
}
