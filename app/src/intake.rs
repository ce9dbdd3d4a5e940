//! Files from outside: dropped anywhere on the window, or chosen.
//!
//! The handle of the file goes to the worker; the window never reads its bytes.

use std::cell::Cell;
use std::rc::Rc;

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{DataTransfer, DragEvent, File, HtmlInputElement};

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
    let files = event.data_transfer().and_then(|transfer| transfer.files());
    if let Some(file) = files.and_then(|files| files.get(0)) {
        page.import(file);
    }
}

/// Takes the chosen file and empties the field, so that the same file can be chosen again.
pub fn on_pick(page: Page, input: &HtmlInputElement) {
    let file: Option<File> = input.files().and_then(|files| files.get(0));
    input.set_value("");
    if let Some(file) = file {
        page.import(file);
    }
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
