//! What a page has asked for and not heard the end of.

use std::collections::BTreeMap;

use protocol::{Command, Event, ImportId, ImportSource, RequestId, Subject};

#[derive(Default)]
pub struct Pending {
    requests: Vec<RequestId>,
    /// As they were asked for, so that they can be asked for again: pieces that are verified
    /// already are not fetched twice.
    imports: BTreeMap<ImportId, (Command, Option<u32>)>,
    /// With the numbers of their files.
    cancelling: BTreeMap<ImportId, Option<u32>>,
}

/// What an owner left undone when it went.
#[derive(Default)]
pub struct Left {
    /// These have no end.
    pub requests: Vec<RequestId>,
    /// These are to be given again, with the number of a file.
    pub again: Vec<(Command, Option<u32>)>,
    /// These were to be stopped, and are.
    pub cancelled: Vec<(ImportId, Option<u32>)>,
}

impl Pending {
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.imports.is_empty() && self.cancelling.is_empty()
    }

    pub fn asked(&mut self, command: &Command, attached: Option<u32>) {
        match command {
            Command::Chat { request, .. }
            | Command::Measure { request, .. }
            | Command::Time { request, .. } => self.requests.push(*request),
            Command::Import { import, .. } => {
                let again = (command.clone(), attached);
                self.imports.insert(*import, again);
            }
            // A stopped import must not begin again with the next owner.
            Command::CancelImport { import, .. } => {
                let stopped = self.imports.remove(import);
                self.cancelling
                    .extend(stopped.map(|(_, file)| (*import, file)));
            }
            _ => {}
        }
    }

    /// The number of the file that is of no more use, if the event ends an import of one.
    pub fn told(&mut self, event: &Event) -> Option<u32> {
        match event {
            Event::Done { request, .. }
            | Event::Measured { request, .. }
            | Event::Interrupted { request }
            | Event::Failed {
                subject: Subject::Request(request),
                ..
            } => {
                self.requests.retain(|pending| pending != request);
                None
            }
            Event::Imported { import, .. }
            | Event::ImportCancelled { import }
            | Event::Failed {
                subject: Subject::Import(import),
                ..
            } => {
                let stopped = self.cancelling.remove(import);
                let running = self.imports.remove(import).map(|(_, file)| file);
                stopped.or(running).flatten()
            }
            _ => None,
        }
    }

    /// The owner is gone.
    pub fn interrupt(&mut self) -> Left {
        let imports = std::mem::take(&mut self.imports);
        Left {
            requests: std::mem::take(&mut self.requests),
            again: imports.into_values().collect(),
            cancelled: std::mem::take(&mut self.cancelling).into_iter().collect(),
        }
    }
}

/// What a person knows the source by.
pub fn name_of(source: &ImportSource) -> String {
    match source {
        ImportSource::File { name, .. }
        | ImportSource::Files { name, .. }
        | ImportSource::Borrowed { name, .. } => name.clone(),
        ImportSource::Catalogue(entry) => entry.name.clone(),
        ImportSource::Invite(invited) => invited.name.clone(),
        ImportSource::Address { url } => {
            let path = url.split(['?', '#']).next().unwrap_or_default();
            path.rsplit('/').next().unwrap_or_default().to_owned()
        }
    }
}
