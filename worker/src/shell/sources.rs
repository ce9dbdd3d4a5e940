//! Bytes of dropped files and of addresses.
//!
//! Where a reply's bytes belong is decided by `store::place` from its headers; a body is read only
//! as far as it is wanted. Everything under way for a source ends when the source is cancelled.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use format::{Digest, ModelId, PieceIndex, Root};
use js_sys::Uint8Array;
use store::{PieceRun, RangeRefusal, Reply};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    AbortController, Blob, DedicatedWorkerGlobalScope, File, Headers, ReadableStreamDefaultReader,
    ReadableStreamReadResult, Request, RequestCache, RequestInit, Response, Url,
};

use crate::source::{Source, SourceFault, beginning};

/// Where the server's models are, relative to the worker's script.
const CATALOGUE: &str = "models/catalogue.json";
/// Bytes before the wanted ones that are read and passed over. A server that begins further off
/// does not know ranges.
const PASSED_MAX: u64 = 1024 * 1024;

pub struct Sources {
    base: String,
    files: RefCell<BTreeMap<u32, File>>,
    addresses: RefCell<BTreeMap<Source, Rc<Address>>>,
}

struct Address {
    url: String,
    length: Option<u64>,
    abort: Option<AbortController>,
}

/// What of a reply is wanted.
enum Wanted {
    Part { at: u64, len: u32 },
    Whole { most: u32 },
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

    pub fn name(&self, source: Source, url: &str, length: Option<u64>) {
        let url = Url::new_with_base(url, &self.base);
        let address = Address {
            // An address that is none answers like one where nothing is.
            url: url.map_or_else(|_| String::new(), |url| url.href()),
            length,
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
        }
    }

    /// Exactly `len` bytes from `at` on. The future does not borrow anything.
    pub fn read(
        &self,
        scope: &DedicatedWorkerGlobalScope,
        source: Source,
        at: u64,
        len: u32,
    ) -> impl Future<Output = Result<Vec<u8>, SourceFault>> + use<> {
        let file = match source {
            Source::File(number) => self.files.borrow().get(&number).cloned(),
            Source::Address(_) => None,
        };
        let address = self.addresses.borrow().get(&source).cloned();
        let scope = scope.clone();
        async move {
            match (file, address) {
                (Some(file), _) => read_file(&file, at, len).await,
                (None, Some(address)) => fetch(&scope, &address, Wanted::Part { at, len }).await,
                (None, None) => Err(SourceFault::NotAttached),
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
                Some(address) => fetch(&scope, &address, Wanted::Whole { most }).await,
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

async fn fetch(
    scope: &DedicatedWorkerGlobalScope,
    address: &Address,
    wanted: Wanted,
) -> Result<Vec<u8>, SourceFault> {
    let request = request(address, &wanted).map_err(|_| SourceFault::Unreachable)?;
    let response = JsFuture::from(scope.fetch_with_request(&request))
        .await
        .map_err(|_| SourceFault::Unreachable)?;
    let response: Response = response.unchecked_into();
    let (passed, len) = match wanted {
        Wanted::Whole { most } if response.ok() => (0, u64::from(most) + 1),
        Wanted::Whole { .. } => return Err(SourceFault::Status(response.status())),
        Wanted::Part { at, len } => {
            let first = place(address, &response, at, len)?;
            let passed = at - first;
            if passed > PASSED_MAX {
                return Err(SourceFault::NoRanges);
            }
            (passed, u64::from(len))
        }
    };
    let mut bytes = read_body(&response, passed + len).await?;
    let is_page = header(&response, "content-type")
        .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/html"));
    if is_page {
        let first = beginning(&bytes);
        return Err(SourceFault::Page { first });
    }
    match wanted {
        Wanted::Whole { most } if bytes.len() as u64 > u64::from(most) => {
            let most = u64::from(most);
            Err(SourceFault::TooLarge { most })
        }
        Wanted::Whole { .. } => Ok(bytes),
        Wanted::Part { .. } => {
            let found = (bytes.len() as u64).saturating_sub(passed);
            if found < len {
                let expected = len;
                return Err(SourceFault::Short { expected, found });
            }
            bytes.drain(..passed as usize);
            Ok(bytes)
        }
    }
}

fn request(address: &Address, wanted: &Wanted) -> Result<Request, JsValue> {
    let init = RequestInit::new();
    // The pieces are kept by the store; the browser's cache would keep them a second time.
    init.set_cache(RequestCache::NoStore);
    init.set_signal(address.abort.as_ref().map(AbortController::signal).as_ref());
    if let Wanted::Part { at, len } = wanted {
        let headers = Headers::new()?;
        let last = at + u64::from(*len) - 1;
        headers.set("range", &format!("bytes={at}-{last}"))?;
        init.set_headers_headers(&headers);
    }
    Request::new_with_str_and_init(&address.url, &init)
}

/// The first byte of the file that the body holds.
fn place(address: &Address, response: &Response, at: u64, len: u32) -> Result<u64, SourceFault> {
    let content_range = header(response, "content-range");
    let is_compressed = header(response, "content-encoding").is_some();
    let content_length = header(response, "content-length")
        .and_then(|text| text.trim().parse().ok())
        .filter(|_| !is_compressed);
    let reply = Reply {
        status: response.status(),
        content_range: content_range.as_deref(),
        content_length,
    };
    // `place` looks at lengths and positions only.
    let id = ModelId {
        root: Root(Digest::default()),
        length: address.length.unwrap_or(at + u64::from(len)),
    };
    let run = PieceRun {
        first: PieceIndex(0),
        count: 0,
        at,
        len: u64::from(len),
    };
    store::place(id, run, reply).map_err(|refusal| match refusal {
        RangeRefusal::Status(status) => SourceFault::Status(status),
        refusal => SourceFault::Range(refusal),
    })
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

fn header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).ok().flatten()
}
