//! What a failure is about.

use format::ModelId;
use serde::{Deserialize, Serialize};

use crate::{Command, ImportId, RequestId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    Start,
    Import(ImportId),
    Load(ModelId),
    Request(RequestId),
    Store,
    Catalogue,
    /// Something that was asked of this stored model.
    Model(ModelId),
    /// A command that is about none of these: it was not done, and nothing else has changed.
    Asked,
}

impl Command {
    /// What its refusal is about.
    pub fn subject(&self) -> Subject {
        match self {
            Command::Catalogue { .. } => Subject::Catalogue,
            Command::ListModels | Command::Swarm(_) | Command::ForgetKept { .. } => Subject::Store,
            Command::Import { import, .. } | Command::CancelImport { import, .. } => {
                Subject::Import(*import)
            }
            Command::Load { model, .. } => Subject::Load(*model),
            Command::Chat { request, .. }
            | Command::Measure { request, .. }
            | Command::Time { request, .. }
            | Command::Stop { request } => Subject::Request(*request),
            Command::DeleteModel { model }
            | Command::Export { model }
            | Command::Check { model } => Subject::Model(*model),
            Command::Unload
            | Command::Diagnostics
            | Command::ForgetFailures
            | Command::Prefer(_)
            | Command::TakeOver => Subject::Asked,
        }
    }
}
