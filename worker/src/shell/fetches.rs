//! Requests to servers, one portion of a body at a time. What a reply is worth is decided by
//! `store::Transfer`; here nothing is decided.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use js_sys::Uint8Array;
use store::{Break, News, ReplyHead};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    AbortController, DedicatedWorkerGlobalScope, Headers, ReadableStreamDefaultReader,
    ReadableStreamReadResult, ReferrerPolicy, Request, RequestCache, RequestInit, Response, Url,
};

use crate::session::{Ask, FetchId};

#[derive(Default)]
pub struct Fetches(RefCell<BTreeMap<FetchId, Rc<Fetch>>>);

struct Fetch {
    abort: AbortController,
    /// Set with the head of a reply that has a body.
    body: RefCell<Option<ReadableStreamDefaultReader>>,
}

impl Fetches {
    /// Sends a request; the head of its reply, or why there is none.
    pub fn begin(
        &self,
        scope: &DedicatedWorkerGlobalScope,
        fetch: FetchId,
        url: &str,
        ask: &Ask,
    ) -> impl Future<Output = News> + use<> {
        let started = AbortController::new().and_then(|abort| {
            let origin = scope.location().origin();
            let request = request(&abort, url, ask, &origin)?;
            Ok((abort, scope.fetch_with_request(&request)))
        });
        let started = started.ok().map(|(abort, reply)| {
            let body = RefCell::default();
            let fetch_kept = Rc::new(Fetch { abort, body });
            self.0.borrow_mut().insert(fetch, Rc::clone(&fetch_kept));
            (fetch_kept, reply)
        });
        async move {
            let Some((fetch, reply)) = started else {
                return News::Broken(Break::Unreachable);
            };
            let Ok(reply) = JsFuture::from(reply).await else {
                return News::Broken(Break::Unreachable);
            };
            let reply: Response = reply.unchecked_into();
            let reader = reply.body().map(|body| body.get_reader().unchecked_into());
            fetch.body.replace(reader);
            News::Head(head(&reply))
        }
    }

    /// The next portion of a body.
    pub fn more(&self, fetch: FetchId) -> impl Future<Output = News> + use<> {
        let known = self.0.borrow().get(&fetch).cloned();
        let reader = known.and_then(|fetch| fetch.body.borrow().clone());
        async move {
            let Some(reader) = reader else {
                return News::End;
            };
            let Ok(read) = JsFuture::from(reader.read()).await else {
                return News::Broken(Break::Cut);
            };
            let read: ReadableStreamReadResult = read.unchecked_into();
            match read.get_done().unwrap_or(true) {
                true => News::End,
                false => {
                    let portion: Uint8Array = read.get_value().unchecked_into();
                    News::Body(portion.to_vec())
                }
            }
        }
    }

    /// Nothing more of it is wanted.
    pub fn abort(&self, fetch: FetchId) {
        if let Some(fetch) = self.0.borrow_mut().remove(&fetch) {
            fetch.abort.abort();
        }
    }

    pub fn abort_all(&self) {
        for fetch in self.0.take().into_values() {
            fetch.abort.abort();
        }
    }

    /// Its last news is out.
    pub fn forget(&self, fetch: FetchId) {
        self.0.borrow_mut().remove(&fetch);
    }
}

fn request(
    abort: &AbortController,
    url: &str,
    ask: &Ask,
    origin: &str,
) -> Result<Request, JsValue> {
    let init = RequestInit::new();
    // The pieces are kept by the store; the browser's cache would keep them a second time.
    init.set_cache(RequestCache::NoStore);
    init.set_signal(Some(&abort.signal()));
    // Nobody needs to know from where a model is fetched.
    init.set_referrer_policy(ReferrerPolicy::NoReferrer);
    let headers = Headers::new()?;
    if let Some((first, last)) = ask.range {
        headers.set("range", &format!("bytes={first}-{last}"))?;
        let is_ours = Url::new(url)?.origin() == origin;
        // Other origins would first have to be asked whether they allow this header.
        if let Some(if_range) = ask.if_range.as_ref().filter(|_| is_ours) {
            headers.set("if-range", if_range)?;
        }
    }
    init.set_headers_headers(&headers);
    Request::new_with_str_and_init(url, &init)
}

fn head(reply: &Response) -> ReplyHead {
    let header = |name: &str| reply.headers().get(name).ok().flatten();
    let is_compressed = header("content-encoding").is_some();
    let length = header("content-length").and_then(|text| text.trim().parse().ok());
    ReplyHead {
        status: reply.status(),
        content_range: header("content-range"),
        content_length: length.filter(|_| !is_compressed),
        content_type: header("content-type"),
        etag: header("etag"),
        last_modified: header("last-modified"),
        retry_after: header("retry-after"),
        date: header("date"),
        led_to: reply.redirected().then(|| reply.url()),
    }
}
