//! The files of a dropped or chosen folder, without those of folders in it.

use js_sys::{Array, Function, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    DataTransfer, File, FileSystemDirectoryEntry, FileSystemDirectoryReader, FileSystemFileEntry,
};

/// More files than any model has, and few enough to be listed at once.
const FILES_MAX: usize = 1024;

/// The folder that was dropped, if it was one.
pub fn of(transfer: &DataTransfer) -> Option<FileSystemDirectoryEntry> {
    let entry = transfer.items().get(0)?.webkit_get_as_entry().ok()??;
    entry.is_directory().then(|| entry.unchecked_into())
}

/// Its name and its files; what cannot be read is passed over, and then missed by name.
pub async fn files(folder: FileSystemDirectoryEntry) -> (String, Vec<File>) {
    let reader = folder.create_reader();
    let mut files = Vec::new();
    // A reader gives a portion at a time, and at the end an empty one.
    while files.len() < FILES_MAX {
        let Ok(portion) = JsFuture::from(portion(&reader)).await else {
            break;
        };
        let portion: Array = portion.unchecked_into();
        if portion.length() == 0 {
            break;
        }
        for entry in portion.iter() {
            let entry: FileSystemFileEntry = entry.unchecked_into();
            if !entry.is_file() {
                continue;
            }
            if let Ok(file) = JsFuture::from(file(&entry)).await {
                files.push(file.unchecked_into());
            }
        }
    }
    (folder.name(), files)
}

/// The folder that a chosen file lies in; empty if it was chosen by itself.
pub fn name_of(file: &File) -> String {
    let path = Reflect::get(file, &"webkitRelativePath".into());
    let path = path.ok().and_then(|path| path.as_string());
    let path = path.unwrap_or_default();
    let folder = path.split_once('/').map(|(folder, _)| folder.to_owned());
    folder.unwrap_or_default()
}

fn portion(reader: &FileSystemDirectoryReader) -> Promise {
    Promise::new(&mut |good: Function, bad: Function| {
        if reader
            .read_entries_with_callback_and_callback(&good, &bad)
            .is_err()
        {
            drop(bad.call0(&JsValue::NULL));
        }
    })
}

fn file(entry: &FileSystemFileEntry) -> Promise {
    Promise::new(&mut |good: Function, bad: Function| {
        entry.file_with_callback_and_callback(&good, &bad);
    })
}
