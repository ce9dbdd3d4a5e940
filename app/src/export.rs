//! A stored model as a file outside the browser. The window passes handles on and reads no byte.
//!
//! Where the browser lets a page write to a file that the person chose, the browser streams the
//! model there; elsewhere the model is a download, for which the browser copies its own file.

use js_sys::{Function, Object, Promise, Reflect};
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Blob, HtmlAnchorElement, Url};

use crate::error::AppError;
use crate::page::Page;
use crate::state::Action;

/// Until then the browser has begun to read a download.
const DOWNLOAD_MS: u64 = 60_000;

#[wasm_bindgen]
extern "C" {
    /// A handle on a chosen file, and the stream into it, which web-sys has only in part.
    type Chosen;
    #[wasm_bindgen(method, catch, js_name = createWritable)]
    fn create_writable(this: &Chosen) -> Result<Promise, JsValue>;

    type Source;
    #[wasm_bindgen(method, catch)]
    fn stream(this: &Source) -> Result<Readable, JsValue>;

    type Readable;
    #[wasm_bindgen(method, catch, js_name = pipeTo)]
    fn pipe_to(this: &Readable, writable: &JsValue) -> Result<Promise, JsValue>;
}

pub fn hand_over(page: Page, name: String, file: Blob) {
    let picker = Reflect::get(&window(), &"showSaveFilePicker".into());
    let picker = picker.ok().and_then(|it| it.dyn_into::<Function>().ok());
    spawn_local(async move {
        let done = match picker {
            Some(picker) => write(&picker, &name, &file).await,
            None => download(&name, &file),
        };
        match done {
            Ok(()) => {}
            // Who closes the dialog wants no file.
            Err(error) if exception(&error) == "AbortError" => {}
            Err(_) => page.act(Action::Trouble(AppError::ExportFailed)),
        }
    });
}

async fn write(picker: &Function, name: &str, file: &Blob) -> Result<(), JsValue> {
    let options = Object::new();
    Reflect::set(&options, &"suggestedName".into(), &name.into())?;
    let asked: Promise = picker.call1(&window(), &options)?.unchecked_into();
    let chosen: Chosen = JsFuture::from(asked).await?.unchecked_into();
    let writable = JsFuture::from(chosen.create_writable()?).await?;
    let source: &Source = file.unchecked_ref();
    JsFuture::from(source.stream()?.pipe_to(&writable)?)
        .await
        .map(drop)
}

fn download(name: &str, file: &Blob) -> Result<(), JsValue> {
    let address = Url::create_object_url_with_blob(file)?;
    let link: HtmlAnchorElement = document().create_element("a")?.unchecked_into();
    link.set_href(&address);
    link.set_download(name);
    link.click();
    set_timeout(
        move || Url::revoke_object_url(&address).unwrap_or_default(),
        std::time::Duration::from_millis(DOWNLOAD_MS),
    );
    Ok(())
}

fn exception(error: &JsValue) -> String {
    let name = Reflect::get(error, &"name".into());
    name.ok()
        .and_then(|name| name.as_string())
        .unwrap_or_default()
}
