//! The browser's private file system, in a dedicated worker: the only place of this crate that
//! names the browser.
//!
//! A sync access handle reads and writes at once, but opening, listing, renaming and removing
//! answer later. So [`OpfsDisk`] is a `Disk`, and [`OpfsCatalog`] has the calls of `Catalog` as
//! async functions. A handle locks its file against everyone, one that only reads (of a complete
//! model, in Chromium) against those that write, also for a moment after its tab
//! died: what is refused as locked is tried again for two seconds before it is `Busy`.

use std::future::Future;
use std::rc::Rc;

use js_sys::{Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Blob, DomException, File, FileSystemDirectoryHandle, FileSystemFileHandle,
    FileSystemGetDirectoryOptions, FileSystemGetFileOptions, FileSystemHandle,
    FileSystemHandleKind, FileSystemReadWriteOptions, FileSystemSyncAccessHandle, StorageEstimate,
};

use crate::later::LaterCatalog;
use crate::names::Name;
use crate::{Disk, Entry, Estimate, Operation, StoreError, names};

const RETRY_STEP_MS: u32 = 25;
const RETRIES: u32 = 2000 / RETRY_STEP_MS;
/// The greatest integer that JavaScript's numbers hold exactly.
const POSITION_MAX: u64 = (1 << 53) - 1;

#[wasm_bindgen]
extern "C" {
    /// `navigator.storage`; some browsers lack one or both methods, so both may throw.
    type Storage;
    #[wasm_bindgen(method, catch, js_name = getDirectory)]
    fn get_directory(this: &Storage) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn estimate(this: &Storage) -> Result<Promise, JsValue>;

    /// A file handle with the calls that web-sys lacks or lets trap where they are missing.
    #[wasm_bindgen(extends = FileSystemFileHandle)]
    type FileHandle;
    #[wasm_bindgen(method, catch, js_name = createSyncAccessHandle)]
    fn open_handle(this: &FileHandle, options: &Object) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch, js_name = move)]
    fn rename(this: &FileHandle, name: &str) -> Result<Promise, JsValue>;

    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(handler: &Function, delay_ms: u32) -> JsValue;
}

/// One directory of the origin's private file system.
#[derive(Clone)]
pub struct OpfsCatalog {
    directory: FileSystemDirectoryHandle,
}

/// One open file. Clones share the handle; the last one closes it.
#[derive(Clone)]
pub struct OpfsDisk {
    shared: Rc<Handle>,
    /// Of a complete model, for more handles to be asked for.
    lent: Option<FileSystemFileHandle>,
}

struct Handle(FileSystemSyncAccessHandle);

/// The browser's figures; empty where it gives none.
pub async fn estimate() -> Estimate {
    let Some(asked) = storage().and_then(|storage| storage.estimate().ok()) else {
        return Estimate::default();
    };
    let Ok(figures) = JsFuture::from(asked).await else {
        return Estimate::default();
    };
    let figures: StorageEstimate = figures.unchecked_into();
    let bytes = |figure: f64| figure as u64;
    Estimate {
        usage: figures.get_usage().map(bytes),
        quota: figures.get_quota().map(bytes),
    }
}

impl OpfsCatalog {
    /// The directory of all models, made if it is missing. [`StoreError::Unsupported`] where the
    /// browser has no such storage, [`StoreError::Denied`] where it forbids it.
    pub async fn models() -> Result<OpfsCatalog, StoreError> {
        OpfsCatalog::at(names::DIRECTORY).await
    }

    /// As `models`, with another name.
    pub async fn at(name: &str) -> Result<OpfsCatalog, StoreError> {
        let operation = Operation::Directory;
        let storage = storage().ok_or(StoreError::Unsupported { operation })?;
        let refused = |error: JsValue| match exception(&error).as_str() {
            "TypeError" => StoreError::Unsupported { operation },
            _ => refusal(&error, operation, name, 0),
        };
        let asked = storage.get_directory().map_err(refused)?;
        let root = JsFuture::from(asked).await.map_err(refused)?;
        let root: FileSystemDirectoryHandle = root.unchecked_into();
        let options = FileSystemGetDirectoryOptions::new();
        options.set_create(true);
        let asked = root.get_directory_handle_with_options(name, &options);
        let directory = JsFuture::from(asked).await.map_err(refused)?;
        Ok(OpfsCatalog {
            directory: directory.unchecked_into(),
        })
    }

    /// The file as it is now, open or not, to be read elsewhere.
    pub async fn snapshot(&self, name: &str) -> Result<Blob, StoreError> {
        let operation = Operation::Open;
        let file = self.file(name, operation).await?;
        let file = JsFuture::from(file.get_file()).await;
        let file = file.map_err(|error| refusal(&error, operation, name, 0))?;
        Ok(file.unchecked_into::<File>().unchecked_into())
    }

    async fn file(&self, name: &str, operation: Operation) -> Result<FileHandle, StoreError> {
        let file = JsFuture::from(self.directory.get_file_handle(name)).await;
        let file = file.map_err(|error| refusal(&error, operation, name, 0))?;
        Ok(file.unchecked_into())
    }
}

impl LaterCatalog for OpfsCatalog {
    type Disk = OpfsDisk;

    async fn list(&self) -> Result<Vec<Entry>, StoreError> {
        let refused = |error: JsValue| refusal(&error, Operation::List, "", 0);
        let files = self.directory.values();
        let mut entries = Vec::new();
        loop {
            let asked = files.next_iterator().map_err(refused)?;
            let next = JsFuture::from(asked).await.map_err(refused)?;
            if next.done() {
                break;
            }
            let handle: FileSystemHandle = next.value().unchecked_into();
            if handle.kind() == FileSystemHandleKind::File {
                let name = handle.name();
                let file: FileSystemFileHandle = handle.unchecked_into();
                // One file that cannot be looked at must not hide the others.
                let file = JsFuture::from(file.get_file()).await;
                let len = file.map(|file| file.unchecked_into::<File>().size() as u64);
                let len = len.ok();
                entries.push(Entry { name, len });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    async fn open(&self, name: &str) -> Result<OpfsDisk, StoreError> {
        let file = self.file(name, Operation::Open).await?;
        let disk = open_handle(&file, name, Operation::Open).await?;
        let lent = is_complete(name).then(|| file.unchecked_into());
        Ok(OpfsDisk { lent, ..disk })
    }

    async fn create(&self, name: &str) -> Result<OpfsDisk, StoreError> {
        let operation = Operation::Create;
        match self.file(name, operation).await {
            Err(StoreError::NotFound { .. }) => {}
            Ok(_) => return Err(StoreError::Exists { name: name.into() }),
            Err(error) => return Err(error),
        }
        let options = FileSystemGetFileOptions::new();
        options.set_create(true);
        let asked = self.directory.get_file_handle_with_options(name, &options);
        let file = JsFuture::from(asked).await;
        let file = file.map_err(|error| refusal(&error, operation, name, 0))?;
        open_handle(&file.unchecked_into(), name, operation).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let operation = Operation::Rename;
        let file = self.file(from, operation).await?;
        let renamed = patiently(|| file.rename(to)).await;
        renamed
            .map(drop)
            .map_err(|error| match exception(&error).as_str() {
                "TypeError" => StoreError::Unsupported { operation },
                _ => refusal(&error, operation, from, 0),
            })
    }

    async fn remove(&self, name: &str) -> Result<(), StoreError> {
        let removed = patiently(|| Ok(self.directory.remove_entry(name))).await;
        let removed = removed.map(drop);
        removed.map_err(|error| refusal(&error, Operation::Remove, name, 0))
    }
}

impl OpfsDisk {
    /// For readers that fill another module's memory, which the handle accepts as it is.
    pub fn handle(&self) -> &FileSystemSyncAccessHandle {
        &self.shared.0
    }

    /// For another reader of a complete model. It gets a handle of its own where this browser has
    /// handles that only read.
    pub fn file(&self) -> Option<&FileSystemFileHandle> {
        self.lent.as_ref()
    }
}

impl Disk for OpfsDisk {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let want = into.len() as u64;
        reachable(at, want)?;
        let mut got = 0;
        while got < into.len() {
            let options = position(at + got as u64);
            let read = self.handle();
            let read = read.read_with_u8_array_and_options(&mut into[got..], &options);
            let read = read.map_err(|error| refusal(&error, Operation::Read, "", 0))?;
            if read < 1.0 {
                let got = got as u64;
                return Err(StoreError::ShortRead { at, want, got });
            }
            got += read as usize;
        }
        // Nothing to read is still an answer about the handle.
        if want == 0 {
            self.len().map(drop)
        } else {
            Ok(())
        }
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let needed = bytes.len() as u64;
        reachable(at, needed)?;
        let mut done = 0;
        while done < bytes.len() {
            let options = position(at + done as u64);
            let written = self.handle();
            let written = written.write_with_u8_array_and_options(&bytes[done..], &options);
            let written = written.map_err(|error| refusal(&error, Operation::Write, "", needed))?;
            if written < 1.0 {
                return Err(StoreError::Quota { needed });
            }
            done += written as usize;
        }
        if needed == 0 {
            self.len().map(drop)
        } else {
            Ok(())
        }
    }

    fn len(&self) -> Result<u64, StoreError> {
        let len = self.handle().get_size();
        let len = len.map_err(|error| refusal(&error, Operation::Len, "", 0))?;
        Ok(len as u64)
    }

    fn set_len(&mut self, len: u64) -> Result<(), StoreError> {
        reachable(len, 0)?;
        let set = self.handle().truncate_with_f64(len as f64);
        set.map_err(|error| refusal(&error, Operation::SetLen, "", len))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let flushed = self.handle().flush();
        flushed.map_err(|error| refusal(&error, Operation::Flush, "", 0))
    }

    fn close(&mut self) -> Result<(), StoreError> {
        // The second close of a handle does nothing.
        self.handle().close();
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn open_handle(
    file: &FileHandle,
    name: &str,
    operation: Operation,
) -> Result<OpfsDisk, StoreError> {
    let options = Object::new();
    if is_complete(name) {
        // Other browsers do not know the word and give the usual handle, which excludes others.
        let mode = Reflect::set(&options, &"mode".into(), &"read-only".into());
        mode.map_err(|error| refusal(&error, operation, name, 0))?;
    }
    let opened = patiently(|| file.open_handle(&options)).await;
    let opened = opened.map_err(|error| match exception(&error).as_str() {
        // Windows and shared workers have no such handles, and old browsers have none at all.
        "TypeError" => StoreError::Unsupported { operation },
        // What a handle that was never closed leaves behind in Safari.
        "InvalidStateError" => StoreError::Busy { name: name.into() },
        _ => refusal(&error, operation, name, 0),
    })?;
    Ok(OpfsDisk {
        shared: Rc::new(Handle(opened.unchecked_into())),
        lent: None,
    })
}

/// A complete model is never written again: before it is mended it gets another name.
fn is_complete(name: &str) -> bool {
    matches!(names::parse(name), Some(Name::Done(_)))
}

/// Tries again while another handle holds the file, for two seconds.
async fn patiently(ask: impl Fn() -> Result<Promise, JsValue>) -> Result<JsValue, JsValue> {
    let mut tries = 0;
    loop {
        let answer = JsFuture::from(ask()?).await;
        let Err(error) = &answer else {
            return answer;
        };
        let name = exception(error);
        let held = name == "NoModificationAllowedError" || name == "InvalidStateError";
        if !held || tries == RETRIES {
            return answer;
        }
        tries += 1;
        pause(RETRY_STEP_MS).await;
    }
}

fn pause(delay_ms: u32) -> impl Future<Output = ()> {
    let timer = Promise::new(&mut |resolve, _| {
        set_timeout(&resolve, delay_ms);
    });
    // A timer's promise is never rejected.
    async move { drop(JsFuture::from(timer).await) }
}

fn storage() -> Option<Storage> {
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).ok()?;
    let storage = Reflect::get(&navigator, &"storage".into()).ok()?;
    storage.is_object().then(|| storage.unchecked_into())
}

fn position(at: u64) -> FileSystemReadWriteOptions {
    let options = FileSystemReadWriteOptions::new();
    options.set_at(at as f64);
    options
}

fn reachable(at: u64, len: u64) -> Result<(), StoreError> {
    let end = at.checked_add(len).filter(|&end| end <= POSITION_MAX);
    end.map(drop).ok_or(StoreError::Bounds { at, len })
}

/// The name of a `DOMException` or an `Error`. Codes and classes differ between browsers.
fn exception(error: &JsValue) -> String {
    if let Some(error) = error.dyn_ref::<DomException>() {
        return error.name();
    }
    let name = Reflect::get(error, &"name".into());
    let name = name.ok().and_then(|name| name.as_string());
    name.unwrap_or_default()
}

fn refusal(error: &JsValue, operation: Operation, name: &str, needed: u64) -> StoreError {
    let name = name.to_owned();
    let exception = exception(error);
    match exception.as_str() {
        "NotFoundError" => StoreError::NotFound { name },
        "NoModificationAllowedError" => StoreError::Busy { name },
        "QuotaExceededError" | "NS_ERROR_FILE_NO_DEVICE_SPACE" => StoreError::Quota { needed },
        "SecurityError" | "NotAllowedError" => StoreError::Denied { operation },
        "InvalidStateError" => StoreError::Closed,
        _ => StoreError::Browser {
            operation,
            exception,
        },
    }
}
