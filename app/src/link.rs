//! The port to the inference worker: commands out, events in, as bytes of `protocol`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Array, ArrayBuffer, Function, Int32Array, Object, Reflect, SharedArrayBuffer};
use protocol::{Command, Event, RequestId, decode, encode};
use wasm_bindgen::prelude::*;
use web_sys::{Blob, File, MessageEvent, Worker, WorkerOptions, WorkerType};

use crate::error::AppError;

pub struct Link {
    worker: Worker,
    stop_word: StopWord,
    /// False when this link is over, and with it the worker's end no news.
    open: Rc<Cell<bool>>,
    // Kept alive as long as the worker may call them.
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_error: Closure<dyn FnMut(web_sys::Event)>,
}

/// A word in the memory of an engine with threads, and where it is. What the page writes there the
/// engine sees in the middle of its work, long before it would read a message.
type StopWord = Rc<RefCell<Option<(Int32Array, u32)>>>;

/// What comes through the port.
pub enum Word {
    Event(Box<Event>),
    /// An event and the file that it is about.
    File(Box<Event>, Blob),
    /// Bytes for the peer at the other end of this connection.
    ToPeer(u32, ArrayBuffer),
    Unreadable,
    /// The worker's script failed; nothing more will come.
    Broken,
    /// The worker is of another build than the page.
    OtherBuild,
}

impl Link {
    /// Starts the worker at an address with the page's own query: `?lane=` forces a lane.
    pub fn open(address: &str, hear: impl Fn(Word) + Clone + 'static) -> Result<Link, AppError> {
        let options = WorkerOptions::new();
        options.set_type(WorkerType::Module);
        let worker =
            Worker::new_with_options(address, &options).map_err(|_| AppError::WorkerRefused)?;

        let tell = hear.clone();
        let stop_word = StopWord::default();
        let handed_over = Rc::clone(&stop_word);
        let open = Rc::new(Cell::new(true));
        let is_open = Rc::clone(&open);
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |message: MessageEvent| {
            let data = message.data();
            match data.dyn_ref::<Array>() {
                Some(mail) if mail.get(0).as_f64().is_some() => {
                    for at in (0..mail.length()).step_by(2) {
                        let (link, bytes) = (mail.get(at).as_f64(), mail.get(at + 1).dyn_into());
                        if let (Some(link), Ok(bytes)) = (link, bytes) {
                            tell(Word::ToPeer(link as u32, bytes));
                        }
                    }
                }
                Some(pair) => match (pair.get(0).as_string(), pair.get(1).dyn_into::<Blob>()) {
                    (Some(life), _) if pair.length() == 1 => {
                        watch(&life, &is_open, tell.clone());
                    }
                    (Some(_), _) => tell(Word::OtherBuild),
                    (None, Ok(file)) => tell(with_file(&pair.get(0), file)),
                    (None, Err(_)) => *handed_over.borrow_mut() = word_in(pair),
                },
                None => tell(read(&data)),
            }
        });
        let on_error = Closure::<dyn FnMut(web_sys::Event)>::new(move |error: web_sys::Event| {
            // The browser has logged the details already.
            error.prevent_default();
            hear(Word::Broken);
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        worker.set_onmessageerror(Some(on_error.as_ref().unchecked_ref()));
        worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        Ok(Link {
            worker,
            stop_word,
            open,
            _on_message: on_message,
            _on_error: on_error,
        })
    }

    /// The handles of files travel beside the message; their bytes are never read here.
    pub fn send(&self, command: &Command, files: &[File]) -> Result<(), AppError> {
        if let Command::Stop { request } = command {
            self.stop_at_once(*request);
        }
        let bytes = encode(command).map_err(|_| AppError::MessageUnreadable)?;
        let buffer = js_sys::Uint8Array::from(bytes.as_slice()).buffer();
        let transfer = js_sys::Array::of1(&buffer);
        let message = js_sys::Array::of1(&buffer);
        for file in files {
            message.push(file);
        }
        self.worker
            .post_message_with_transfer(&message, &transfer)
            .map_err(|_| AppError::WorkerDied)
    }

    /// A peer's message goes on as it is, without a copy.
    pub fn pass(&self, link: u32, bytes: &ArrayBuffer) {
        let message = Array::of2(&link.into(), bytes);
        let transfer = Array::of1(bytes);
        // A worker that is gone makes its own event.
        self.worker
            .post_message_with_transfer(&message, &transfer)
            .unwrap_or_default();
    }

    /// The message that follows is the answer to whoever is not computing just now.
    fn stop_at_once(&self, request: RequestId) {
        if let Some((words, at)) = &*self.stop_word.borrow()
            && js_sys::Atomics::store(words, *at, request.stop_number() as i32).is_err()
        {
            // The message stops it too, only later.
        }
    }
}

/// The memory and the address, or nothing if the engine has none to share.
fn word_in(pair: &Array) -> Option<(Int32Array, u32)> {
    let memory: SharedArrayBuffer = pair.get(0).dyn_into().ok()?;
    let address = pair.get(1).as_f64()? as u32;
    Some((Int32Array::new(&memory), address / 4))
}

impl Drop for Link {
    fn drop(&mut self) {
        self.open.set(false);
        self.worker.set_onmessage(None);
        self.worker.set_onmessageerror(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}

fn with_file(data: &JsValue, file: Blob) -> Word {
    match read(data) {
        Word::Event(event) => Word::File(event, file),
        other => other,
    }
}

/// A worker that is killed makes no event, but its lock falls free.
fn watch(life: &str, open: &Rc<Cell<bool>>, tell: impl Fn(Word) + 'static) {
    let Some(locks) = locks() else { return };
    let open = Rc::clone(open);
    let gone = Closure::once_into_js(move |_: JsValue| {
        if open.get() {
            tell(Word::Broken);
        }
    });
    let request = Reflect::get(&locks, &"request".into());
    if let Some(request) = request.ok().and_then(|it| it.dyn_into::<Function>().ok()) {
        // Refused, the worker's end is noticed only where it makes an event.
        request
            .call3(&locks, &life.into(), &Object::new(), &gone)
            .ok();
    }
}

fn locks() -> Option<JsValue> {
    let navigator = web_sys::window()?.navigator();
    let locks = Reflect::get(&navigator, &"locks".into()).ok()?;
    locks.is_object().then_some(locks)
}

fn read(data: &JsValue) -> Word {
    let Some(buffer) = data.dyn_ref::<js_sys::ArrayBuffer>() else {
        return Word::Unreadable;
    };
    match decode(&js_sys::Uint8Array::new(buffer).to_vec()) {
        Ok(event) => Word::Event(Box::new(event)),
        Err(_) => Word::Unreadable,
    }
}
