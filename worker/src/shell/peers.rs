//! Messages of peers, which the page carries, and the files that are given to them.
//!
//! A shared model is read from a snapshot of its file: any number of readers may have one, while
//! the one handle that may write, or feed the engine, stays with whoever has it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use format::{ModelId, PieceIndex};
use js_sys::{Array, ArrayBuffer, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::Blob;

use super::Worker;
use super::files::Directory;
use crate::session::Input;

#[derive(Default)]
pub struct Snapshots(RefCell<BTreeMap<ModelId, Blob>>);

impl Snapshots {
    pub fn forget(&self, model: ModelId) {
        self.0.borrow_mut().remove(&model);
    }

    pub fn forget_all(&self) {
        self.0.borrow_mut().clear();
    }
}

/// A connection's number and what was said on it, if the page's message is such.
pub fn said(data: &JsValue) -> Option<(u32, Vec<u8>)> {
    let pair = data.dyn_ref::<Array>()?;
    let link = pair.get(0).as_f64()?;
    let bytes: ArrayBuffer = pair.get(1).dyn_into().ok()?;
    Some((link as u32, Uint8Array::new(&bytes).to_vec()))
}

/// What goes to peers in one message to the page: a connection's number, its bytes, and so on.
/// A message to another thread costs as much as the bytes in it.
#[derive(Default)]
pub struct Mail {
    message: Array,
    transfer: Array,
}

impl Mail {
    pub fn put(&self, link: u32, bytes: &[u8]) {
        let buffer = Uint8Array::from(bytes).buffer();
        self.message.push(&link.into());
        self.message.push(&buffer);
        self.transfer.push(&buffer);
    }
}

impl Worker {
    pub(super) fn post(&self, mail: &Mail) {
        if mail.message.length() > 0 {
            // Without its page this worker ends, too.
            self.scope
                .post_message_with_transfer(&mail.message, &mail.transfer)
                .unwrap_or_default();
        }
    }

    pub(super) fn read_stored(self: &Rc<Self>, model: ModelId, piece: PieceIndex) {
        let known = self.snapshots.0.borrow().get(&model).cloned();
        let directory = self.directory.borrow().clone();
        let worker = Rc::clone(self);
        self.later(async move {
            let file = match (known, directory) {
                (Some(file), _) => Some(file),
                (None, Some(directory)) => worker.snapshot(&directory, model).await,
                (None, None) => None,
            };
            let bytes = match file {
                Some(file) => read(&file, model, piece).await,
                None => None,
            };
            Input::StoredRead {
                model,
                piece,
                bytes,
            }
        });
    }

    async fn snapshot(&self, directory: &Directory, model: ModelId) -> Option<Blob> {
        let file = directory.file(&store::names::done(model.root)).await.ok()?;
        self.snapshots.0.borrow_mut().insert(model, file.clone());
        Some(file)
    }
}

async fn read(file: &Blob, model: ModelId, piece: PieceIndex) -> Option<Vec<u8>> {
    let (at, len) = model.piece_range(piece);
    let end = at + u64::from(len);
    let part = file.slice_with_f64_and_f64(at as f64, end as f64).ok()?;
    let bytes = JsFuture::from(part.array_buffer()).await.ok()?;
    let bytes = Uint8Array::new(&bytes).to_vec();
    (bytes.len() == len as usize).then_some(bytes)
}
