//! A file that is used where it lies.

use leptos::prelude::*;
use web_sys::File;

use super::Page;
use crate::state::Action;

impl Page {
    /// Gives the worker a file that is used where it lies.
    pub fn borrow(self, file: File) {
        let (name, length) = (file.name(), file.size() as u64);
        if !self.app.with_untracked(|app| app.imports.running()) {
            self.hands.update_value(|hands| hands.files = vec![file]);
        }
        self.act(Action::BorrowFile { name, length });
    }
}
