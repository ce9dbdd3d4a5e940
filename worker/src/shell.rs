//! The worker in a browser: messages in and out, one owner an origin, and the loop that wakes the
//! session.
//!
//! Start: hold the Web Lock, open the storage, load a lane, tell the session. The lock is held
//! before any file is opened and for as long as the worker lives, so files never have two owners.

mod files;
mod lanes;
mod owner;
mod remembered;
mod sources;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use format::ModelId;
use js_sys::{Array, ArrayBuffer, Reflect, Uint8Array};
use protocol::{Command, ErrorReport, Event, Stage, Subject, TrResult, decode, encode};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{
    DedicatedWorkerGlobalScope, File, MessageChannel, MessageEvent, MessagePort, UrlSearchParams,
};

use crate::engine::module::ModuleEngine;
use crate::session::{Input, Output, Session, Start};
use crate::words;
use files::{BrowserDisk, Directory};
use lanes::{LaneFailure, Wish};
use remembered::Remembered;
use sources::Sources;

type BrowserEngine = ModuleEngine<BrowserDisk>;
type BrowserInput = Input<BrowserDisk, BrowserEngine>;

struct Worker {
    scope: DedicatedWorkerGlobalScope,
    session: RefCell<Session<BrowserDisk, BrowserEngine>>,
    /// Set when the storage is open.
    directory: RefCell<Option<Rc<Directory>>>,
    sources: Sources,
    attached: Cell<u32>,
    /// A message posted here comes back as a wake, after whatever is queued already.
    waker: MessagePort,
    /// Lanes that trapped.
    lost_lanes: RefCell<Vec<protocol::LaneId>>,
    /// The page has a stop word.
    handed_over: Cell<bool>,
    /// Set with the storage.
    remembered: RefCell<Option<Rc<Remembered>>>,
}

/// The entry, called when the module is ready. The page sends nothing before it is told so.
#[wasm_bindgen(start)]
pub fn start() -> Result<(), JsValue> {
    console_error_panic_hook::set_once();
    let scope: DedicatedWorkerGlobalScope = js_sys::global().unchecked_into();
    let channel = MessageChannel::new()?;
    let worker = Rc::new(Worker {
        sources: Sources::new(&scope.location().href()),
        scope,
        session: RefCell::new(Session::new()),
        directory: RefCell::new(None),
        attached: Cell::new(0),
        waker: channel.port2(),
        lost_lanes: RefCell::default(),
        handed_over: Cell::new(false),
        remembered: RefCell::default(),
    });

    let woken = Rc::clone(&worker);
    let on_wake = Closure::<dyn FnMut(MessageEvent)>::new(move |_| woken.give(Input::Wake));
    channel
        .port1()
        .set_onmessage(Some(on_wake.as_ref().unchecked_ref()));
    on_wake.forget();

    let hearing = Rc::clone(&worker);
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |message: MessageEvent| {
        hearing.hear(&message.data());
    });
    worker
        .scope
        .set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    // Both listeners live as long as the worker.
    on_message.forget();

    spawn_local(async move { worker.begin().await });
    Ok(())
}

impl Worker {
    /// Waits for the ownership of the files, then for storage and engine.
    async fn begin(self: Rc<Self>) {
        if !owner::try_to_own().await {
            self.tell(&Event::Failed {
                subject: Subject::Start,
                error: elsewhere(),
            });
            owner::wait_to_own().await;
        }
        let forced = self.asked("storage");
        let directory = Rc::new(Directory::open(forced.as_deref()).await);
        self.directory.replace(Some(directory));
        let browser = self.scope.navigator().user_agent().unwrap_or_default();
        let remembered = Rc::new(Remembered::open(browser).await);
        self.remembered.replace(Some(remembered));
        self.load_engine().await;
    }

    async fn load_engine(self: &Rc<Self>) {
        let known = (
            self.directory.borrow().clone(),
            self.remembered.borrow().clone(),
        );
        let (Some(directory), Some(remembered)) = known else {
            return;
        };
        let forced = self.asked("lane");
        let lost = self.lost_lanes.borrow().clone();
        let wish = Wish {
            forced: forced.as_deref(),
            lost: &lost,
            remembered: &remembered,
        };
        let input = match lanes::load(&self.scope, wish).await {
            Ok(loaded) => {
                self.hand_over(loaded.engine.stop_word());
                Input::Started(Start {
                    engine: loaded.engine,
                    lane: loaded.report,
                    downgrades: loaded.downgrades,
                    storage: directory.kind(),
                    publisher: Some(lanes::PUBLISHER),
                    receipt: Box::new(loaded.receipt),
                })
            }
            Err(LaneFailure { error, downgrades }) => Input::NotStarted { error, downgrades },
        };
        self.give(input);
    }

    /// What the worker's own address asks for.
    fn asked(&self, name: &str) -> Option<String> {
        let query = self.scope.location().search();
        UrlSearchParams::new_with_str(&query).ok()?.get(name)
    }

    /// Lets the page stop the engine in the middle of a step, if its memory is shared. This is no
    /// event, because memory cannot be encoded.
    fn hand_over(&self, stop_word: Option<(JsValue, u32)>) {
        let handed = self.handed_over.replace(stop_word.is_some());
        if !handed && stop_word.is_none() {
            return;
        }
        let (memory, address) = stop_word.unwrap_or((JsValue::NULL, 0));
        let pair = Array::of2(&memory, &address.into());
        if self.scope.post_message(&pair).is_err() {
            // Then the page stops between steps, as without shared memory.
        }
    }

    /// A message of the page.
    fn hear(self: &Rc<Self>, data: &JsValue) {
        let (buffer, file) = match data.dyn_ref::<Array>() {
            Some(pair) => (pair.get(0), pair.get(1).dyn_into::<File>().ok()),
            None => (data.clone(), None),
        };
        let command = buffer
            .dyn_ref::<ArrayBuffer>()
            .and_then(|buffer| decode::<Command>(&Uint8Array::new(buffer).to_vec()).ok());
        let Some(command) = command else {
            return self.tell(&Event::Failed {
                subject: Subject::Start,
                error: unreadable(),
            });
        };
        let attached = file.map(|file| {
            let number = self.attached.get().wrapping_add(1);
            self.attached.set(number);
            self.sources.attach(number, file);
            number
        });
        self.give(Input::Command { command, attached });
    }

    /// One input for the session, and everything that it wants then.
    fn give(self: &Rc<Self>, input: BrowserInput) {
        let now_ms = self.now_ms();
        self.session.borrow_mut().handle(now_ms, input);
        loop {
            // The session is not borrowed while its wish is fulfilled.
            let Some(output) = self.session.borrow_mut().poll() else {
                return;
            };
            self.perform(output);
        }
    }

    fn perform(self: &Rc<Self>, output: Output) {
        match output {
            Output::Event(event) => self.tell(&event),
            Output::Address {
                source,
                url,
                length,
            } => self.sources.name(source, &url, length),
            Output::NeedBytes { source, at, len } => {
                let bytes = self.sources.read(&self.scope, source, at, len);
                let directory = self.directory.borrow().clone();
                self.later(async move {
                    let bytes = bytes.await;
                    if let Some(directory) = directory {
                        directory.room().await;
                    }
                    match bytes {
                        Ok(bytes) => Input::Bytes { source, at, bytes },
                        Err(fault) => Input::SourceFailed { source, at, fault },
                    }
                });
            }
            Output::NeedWhole { source, most } => {
                let bytes = self.sources.read_whole(&self.scope, source, most);
                self.later(async move {
                    let at = 0;
                    match bytes.await {
                        Ok(bytes) => Input::Bytes { source, at, bytes },
                        Err(fault) => Input::SourceFailed { source, at, fault },
                    }
                });
            }
            Output::CancelSource(source) => self.sources.cancel(source),
            Output::Files { ticket, op } => {
                let directory = self.directory.borrow().clone();
                self.later(async move {
                    let answer = match directory {
                        Some(directory) => directory.run(op).await,
                        None => Err(store::StoreError::Closed),
                    };
                    Input::Files { ticket, answer }
                });
            }
            Output::Wake => {
                if self.waker.post_message(&JsValue::NULL).is_err() {
                    // The channel is this worker's own, and null can always be sent.
                }
            }
            Output::HandOut(model) => self.hand_out(model),
            Output::EngineLost => self.replace_engine(),
            Output::ForgetFailures => {
                if let Some(remembered) = self.remembered.borrow().as_ref() {
                    remembered.clear();
                }
                self.lost_lanes.borrow_mut().clear();
            }
        }
    }

    /// Gives the session what the future yields.
    fn later(self: &Rc<Self>, input: impl Future<Output = BrowserInput> + 'static) {
        let worker = Rc::clone(self);
        spawn_local(async move { worker.give(input.await) });
    }

    /// The engine trapped: the next slower lane, or the slowest one again.
    fn replace_engine(self: &Rc<Self>) {
        if let Some((lane, _)) = self.session.borrow().lane() {
            self.lost_lanes.borrow_mut().push(lane.lane);
            if let (Some(remembered), Some(sha256)) =
                (self.remembered.borrow().as_ref(), lane.sha256)
            {
                remembered.add(sha256, "It stopped in the middle of its work.".into());
            }
        }
        let worker = Rc::clone(self);
        spawn_local(async move { worker.load_engine().await });
    }

    /// A stored model as a file, beside its event: no byte of it is read here.
    fn hand_out(self: &Rc<Self>, model: ModelId) {
        let directory = self.directory.borrow().clone();
        let worker = Rc::clone(self);
        spawn_local(async move {
            let name = store::names::done(model.root);
            let file = match directory {
                Some(directory) => directory.file(&name).await,
                None => Err(store::StoreError::Closed),
            };
            let told = file.map(|file| {
                let event = encode(&Event::Exported { model }).unwrap_or_default();
                let buffer = Uint8Array::from(event.as_slice()).buffer();
                worker.scope.post_message(&Array::of2(&buffer, &file))
            });
            if let Err(error) = told {
                let error = words::store_error(&error, Stage::Store);
                let subject = Subject::Store;
                worker.tell(&Event::Failed { subject, error });
            }
        });
    }

    fn tell(&self, event: &Event) {
        let Ok(bytes) = encode(event) else {
            return;
        };
        let buffer = Uint8Array::from(bytes.as_slice()).buffer();
        let transfer = Array::of1(&buffer);
        if self
            .scope
            .post_message_with_transfer(&buffer, &transfer)
            .is_err()
        {
            // The page is gone, and this worker with it.
        }
    }

    fn now_ms(&self) -> u64 {
        self.scope
            .performance()
            .map_or(0, |performance| performance.now() as u64)
    }
}

/// Whether the page may share memory.
fn cross_origin_isolated() -> bool {
    Reflect::get(&js_sys::global(), &"crossOriginIsolated".into())
        .is_ok_and(|isolated| isolated.is_truthy())
}

fn elsewhere() -> ErrorReport {
    words::illegal(
        Stage::Start,
        "TinyRustLM is already open in another tab",
        "close it and reload; this tab takes over as soon as the other one is closed",
    )
}

fn unreadable() -> ErrorReport {
    words::report(
        TrResult::InvalidArgument,
        Stage::Start,
        "a message of the page is not one of this version",
        "reload the page",
    )
}
