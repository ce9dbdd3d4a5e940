//! Bytes of dropped files, and whole small files of the app's own server.
//!
//! Everything under way for a source ends when the source is cancelled.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use js_sys::Uint8Array;
use store::StoreError;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    AbortController, Blob, DedicatedWorkerGlobalScope, File, ReadableStreamDefaultReader,
    ReadableStreamReadResult, Request, RequestCache, RequestInit, Response, Url,
};

use super::files::BrowserDisk;
use super::lent::LentFile;
use crate::session::FileAnswer;
use crate::source::{Source, SourceFault, beginning};

/// Where the server's models are, relative to the worker's script.
const CATALOGUE: &str = "models/catalogue.json";
pub struct Sources {
    base: String,
    files: RefCell<BTreeMap<u32, File>>,
    addresses: RefCell<BTreeMap<Source, Rc<Address>>>,
}

struct Address {
    url: String,
    abort: Option<AbortController>,
}

impl Sources {
    /// `script` is the address of the worker's own script.
    pub fn new(script: &str) -> Sources {
        let base = Url::new_with_base(CATALOGUE, script);
        Sources {
            base: base.map_or_else(|_| CATALOGUE.into(), |base| base.href()),
            files: RefCell::default(),
            addresses: RefCell::default(),
        }
    }

    pub fn attach(&self, number: u32, file: File) {
        self.files.borrow_mut().insert(number, file);
    }

    pub fn name(&self, source: Source, url: &str) {
        let url = Url::new_with_base(url, &self.base);
        let address = Address {
            // An address that is none answers like one where nothing is.
            url: url.map_or_else(|_| String::new(), |url| url.href()),
            abort: AbortController::new().ok(),
        };
        self.addresses.borrow_mut().insert(source, Rc::new(address));
    }

    pub fn cancel(&self, source: Source) {
        match source {
            Source::File(number) => {
                self.files.borrow_mut().remove(&number);
            }
            Source::Address(_) => {
                let address = self.addresses.borrow_mut().remove(&source);
                if let Some(abort) = address.and_then(|address| address.abort.clone()) {
                    abort.abort();
                }
            }
            Source::Peers(_) => {}
        }
    }

    /// The address that a source stands for; empty if it stands for none.
    pub fn url(&self, source: Source) -> String {
        let addresses = self.addresses.borrow();
        addresses
            .get(&source)
            .map_or_else(String::new, |address| address.url.clone())
    }

    /// A file as a disk, for as long as it is used where it lies.
    pub fn lend(&self, source: Source) -> Result<FileAnswer<BrowserDisk>, StoreError> {
        let file = match source {
            Source::File(number) => self.files.borrow().get(&number).cloned(),
            Source::Address(_) | Source::Peers(_) => None,
        };
        let file = file.ok_or_else(|| StoreError::NotFound {
            name: "the file that was chosen".into(),
        })?;
        let disk = LentFile::open(file)?;
        Ok(FileAnswer::Opened(BrowserDisk::Lent(disk)))
    }

    /// Exactly `len` bytes of a file from `at` on. The future does not borrow anything.
    pub fn read(
        &self,
        source: Source,
        at: u64,
        len: u32,
    ) -> impl Future<Output = Result<Vec<u8>, SourceFault>> + use<> {
        let file = match source {
            Source::File(number) => self.files.borrow().get(&number).cloned(),
            Source::Address(_) | Source::Peers(_) => None,
        };
        async move {
            match file {
                Some(file) => read_file(&file, at, len).await,
                None => Err(SourceFault::NotAttached),
            }
        }
    }

    /// Everything that an address has.
    pub fn read_whole(
        &self,
        scope: &DedicatedWorkerGlobalScope,
        source: Source,
        most: u32,
    ) -> impl Future<Output = Result<Vec<u8>, SourceFault>> + use<> {
        let address = self.addresses.borrow().get(&source).cloned();
        let scope = scope.clone();
        async move {
            match address {
                Some(address) => fetch_whole(&scope, &address, most).await,
                None => Err(SourceFault::NotAttached),
            }
        }
    }
}

async fn read_file(file: &File, at: u64, len: u32) -> Result<Vec<u8>, SourceFault> {
    let end = at + u64::from(len);
    let part: Blob = file
        .slice_with_f64_and_f64(at as f64, end as f64)
        .map_err(|_| SourceFault::Unreadable)?;
    let buffer = JsFuture::from(part.array_buffer())
        .await
        .map_err(|_| SourceFault::Unreadable)?;
    let bytes = Uint8Array::new(&buffer).to_vec();
    match bytes.len() == len as usize {
        true => Ok(bytes),
        // The file is shorter than it was when it was dropped.
        false => Err(SourceFault::Unreadable),
    }
}

async fn fetch_whole(
    scope: &DedicatedWorkerGlobalScope,
    address: &Address,
    most: u32,
) -> Result<Vec<u8>, SourceFault> {
    let init = RequestInit::new();
    init.set_cache(RequestCache::NoStore);
    init.set_signal(address.abort.as_ref().map(AbortController::signal).as_ref());
    let request = Request::new_with_str_and_init(&address.url, &init)
        .map_err(|_| SourceFault::Unreachable)?;
    let response = JsFuture::from(scope.fetch_with_request(&request))
        .await
        .map_err(|_| SourceFault::Unreachable)?;
    let response: Response = response.unchecked_into();
    if !response.ok() {
        return Err(SourceFault::Status(response.status()));
    }
    let bytes = read_body(&response, u64::from(most) + 1).await?;
    let kind = response.headers().get("content-type").ok().flatten();
    if kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/html")) {
        let first = beginning(&bytes);
        return Err(SourceFault::Page { first });
    }
    match bytes.len() as u64 > u64::from(most) {
        true => Err(SourceFault::TooLarge { most: most.into() }),
        false => Ok(bytes),
    }
}

/// At most `most` bytes of the body; what comes after them is not waited for.
async fn read_body(response: &Response, most: u64) -> Result<Vec<u8>, SourceFault> {
    let Some(body) = response.body() else {
        return Ok(Vec::new());
    };
    let reader: ReadableStreamDefaultReader = body.get_reader().unchecked_into();
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < most {
        let read = JsFuture::from(reader.read()).await;
        let read: ReadableStreamReadResult = match read {
            Ok(read) => read.unchecked_into(),
            Err(_) => return Err(SourceFault::Unreachable),
        };
        if read.get_done().unwrap_or(true) {
            return Ok(bytes);
        }
        let portion: Uint8Array = read.get_value().unchecked_into();
        let wanted = (most - bytes.len() as u64).min(u64::from(portion.length()));
        bytes.extend_from_slice(&portion.subarray(0, wanted as u32).to_vec());
    }
    // Nobody waits for the answer, and a refusal changes nothing.
    drop(reader.cancel());
    Ok(bytes)
}
