//! Files from outside: dropped anywhere on the window, or chosen; several, or a whole folder.
//!
//! The handles of the files go to the worker; the window never reads their bytes.

mod folder;

use std::cell::Cell;
use std::rc::Rc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;
use web_sys::{DataTransfer, DragEvent, File, FileList, HtmlInputElement};

use crate::page::Page;

/// The whole window takes drops for as long as the page lives.
pub fn listen(page: Page) {
    // Entering a child comes before leaving its parent, so enters and leaves are counted.
    let inside = Rc::new(Cell::new(0_i32));

    let count = inside.clone();
    on("dragenter", move |event| {
        event.prevent_default();
        count.set(count.get() + 1);
        page.dragging.set(true);
    });
    let count = inside.clone();
    on("dragleave", move |_| {
        count.set((count.get() - 1).max(0));
        page.dragging.set(count.get() > 0);
    });
    on("dragover", |event| event.prevent_default());
    on("drop", move |event| {
        event.prevent_default();
        inside.set(0);
        page.dragging.set(false);
        on_drop(page, event);
    });
}

pub fn on_drop(page: Page, event: &DragEvent) {
    let Some(transfer) = event.data_transfer() else {
        return;
    };
    // A folder has to be asked for while the event lasts; files are there at once.
    match folder::of(&transfer) {
        Some(folder) => spawn_local(async move {
            let (name, files) = folder::files(folder).await;
            page.import(&name, files);
        }),
        None => page.import("", list(transfer.files())),
    }
}

/// Takes the chosen files and empties the field, so that the same ones can be chosen again.
pub fn on_pick(page: Page, input: &HtmlInputElement) {
    let files = list(input.files());
    let name = files.first().map(folder::name_of).unwrap_or_default();
    page.import(&name, files);
    input.set_value("");
}

/// The same for a file that is to be used and not kept.
pub fn on_borrow(page: Page, input: &HtmlInputElement) {
    if let Some(file) = list(input.files()).into_iter().next() {
        page.borrow(file);
    }
    input.set_value("");
}

fn list(files: Option<FileList>) -> Vec<File> {
    let files = files.into_iter();
    files
        .flat_map(|files| (0..files.length()).filter_map(move |at| files.get(at)))
        .collect()
}

/// Only drags that carry files are ours; text dragged into the composer is not touched.
fn on(name: &'static str, act: impl Fn(&DragEvent) + 'static) {
    let handle = window_event_listener_untyped(name, move |event| {
        let Some(event) = event.dyn_ref::<DragEvent>() else {
            return;
        };
        if event
            .data_transfer()
            .is_some_and(|transfer| carries_files(&transfer))
        {
            act(event);
        }
    });
    // Lives as long as the page.
    std::mem::forget(handle);
}

fn carries_files(transfer: &DataTransfer) -> bool {
    transfer.types().iter().any(|kind| kind == "Files")
}
