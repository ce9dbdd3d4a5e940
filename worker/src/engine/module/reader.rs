//! The browser's worker that reads a model's file while the engine computes.

use js_sys::{Object, Reflect, WebAssembly};
use protocol::abi;
use wasm_bindgen::prelude::*;
use web_sys::{Event, FileSystemFileHandle, Worker};

/// Beside the worker's own script.
const SCRIPT: &str = "reader.js";

/// To be dropped after the model is closed, which waits for a read that is under way.
pub struct Reader {
    worker: Worker,
    _mourn: Closure<dyn FnMut(Event)>,
}

impl Reader {
    /// `None` if the browser refuses. The engine reads everything itself until the worker is there,
    /// and for good where a second handle is refused, as in Firefox.
    pub fn start(
        memory: &WebAssembly::Memory,
        place: &abi::Reader,
        file: &FileSystemFileHandle,
    ) -> Option<Reader> {
        let worker = Worker::new(SCRIPT).ok()?;
        // Otherwise it is taken for a failure of this worker too, and ends the page's session.
        let mourn = Closure::<dyn FnMut(Event)>::new(|error: Event| error.prevent_default());
        worker.set_onerror(Some(mourn.as_ref().unchecked_ref()));
        let reader = Reader {
            worker,
            _mourn: mourn,
        };
        let message = Object::new();
        let set = |name: &str, value: &JsValue| Reflect::set(&message, &name.into(), value);
        set("memory", memory).ok()?;
        set("words", &place.words.into()).ok()?;
        set("number", &place.number.into()).ok()?;
        set("file", file).ok()?;
        reader.worker.post_message(&message).ok()?;
        Some(reader)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}
