//! Stored models that leave as files.

use std::rc::Rc;

use format::ModelId;
use protocol::{Event, Stage, Subject};
use wasm_bindgen_futures::spawn_local;
use web_sys::Blob;

use super::Worker;
use crate::tabs::TabInput;
use crate::words;

impl Worker {
    /// A stored model as a file, beside its event: no byte of it is read here.
    pub(super) fn hand_out(self: &Rc<Self>, model: ModelId) {
        let directory = self.directory.borrow().clone();
        let worker = Rc::clone(self);
        spawn_local(async move {
            let name = store::names::done(model.root);
            let file = match directory {
                Some(directory) => directory.file(&name).await,
                None => Err(store::StoreError::Closed),
            };
            let event = match file {
                Ok(file) => {
                    worker.handed.replace(Some(file));
                    Event::Exported { model }
                }
                Err(error) => Event::Failed {
                    subject: Subject::Model(model),
                    error: words::store_error(&error, Stage::Store),
                },
            };
            worker.tab(TabInput::Session(event));
        });
    }

    pub(super) fn file_of(&self, event: &Event) -> Option<Blob> {
        match event {
            Event::Exported { .. } => self.handed.take(),
            _ => None,
        }
    }
}
