//! The worker in a browser: messages in and out, one owner an origin, and the loop that wakes the
//! session.
//!
//! Start: hold the worker's own lock, find the owner or become it (`tabs`). An owner then opens the
//! storage, loads a lane and tells the session. The origin's lock is held before any file is opened
//! and until all are closed, so files never have two owners.

mod fetches;
mod files;
mod handing;
mod lanes;
mod lent;
mod locks;
mod network;
mod peers;
mod remembered;
mod sources;
mod tabs;
mod wires;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Array, Function, Reflect, Uint8Array};
use protocol::{ClientId, Command, ErrorReport, Event, Stage, Subject, TrResult, decode, encode};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{
    Blob, DedicatedWorkerGlobalScope, MessageChannel, MessageEvent, MessagePort, UrlSearchParams,
};

use crate::engine::module::ModuleEngine;
use crate::session::{FileOp, Input, Output, Session, Start};
use crate::tabs::{Tab, TabInput};
use crate::words;
use fetches::Fetches;
use files::{BrowserDisk, Directory};
use lanes::{LaneFailure, Wish};
use peers::{Mail, Snapshots};
use remembered::Remembered;
use sources::Sources;
use tabs::{Files, tab_of};
use wires::Wires;

type BrowserEngine = ModuleEngine<BrowserDisk>;
type BrowserInput = Input<BrowserDisk, BrowserEngine>;

struct Worker {
    scope: DedicatedWorkerGlobalScope,
    session: RefCell<Session<BrowserDisk, BrowserEngine>>,
    /// Set when the storage is open.
    directory: RefCell<Option<Rc<Directory>>>,
    sources: Sources,
    me: ClientId,
    tab: RefCell<Tab>,
    /// Set at the start, for as long as the worker lives.
    wires: RefCell<Option<Rc<Wires>>>,
    files: RefCell<Files>,
    /// The file of the [`Event::Exported`] that is being passed on.
    handed: RefCell<Option<Blob>>,
    /// Gives the origin's lock back.
    give_back: RefCell<Option<Function>>,
    /// Counts the times this worker has owned: what an earlier term began is not heard in a later.
    term: Cell<u32>,
    fetches: Fetches,
    snapshots: Snapshots,
    /// A message posted here comes back as a wake, after whatever is queued already.
    waker: MessagePort,
    /// What came for the session while it was not certain that it may work.
    doubted: RefCell<Vec<BrowserInput>>,
    /// Lanes that trapped.
    lost_lanes: RefCell<Vec<protocol::LaneId>>,
    /// The page has a stop word.
    handed_over: Cell<bool>,
    /// Set with the storage.
    remembered: RefCell<Option<Rc<Remembered>>>,
}

/// The entry, called when the module is ready. `worker.js` holds what the page said before.
#[wasm_bindgen(start)]
pub fn start() -> Result<(), JsValue> {
    console_error_panic_hook::set_once();
    let scope: DedicatedWorkerGlobalScope = js_sys::global().unchecked_into();
    let channel = MessageChannel::new()?;
    let (me, edition) = tab_of(&scope);
    let worker = Rc::new(Worker {
        sources: Sources::new(&scope.location().href()),
        fetches: Fetches::default(),
        snapshots: Snapshots::default(),
        scope,
        me,
        tab: RefCell::new(Tab::new(me, edition)),
        wires: RefCell::default(),
        files: RefCell::default(),
        handed: RefCell::default(),
        give_back: RefCell::default(),
        term: Cell::new(0),
        session: RefCell::new(Session::new()),
        directory: RefCell::new(None),
        waker: channel.port2(),
        doubted: RefCell::default(),
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
    on_message.forget();

    worker.hear_of_the_network();
    spawn_local(async move { worker.join().await });
    Ok(())
}

impl Worker {
    /// As the owner: opens storage and engine. What is found when the term is over is dropped,
    /// and with it every file.
    async fn work(self: Rc<Self>) {
        let term = self.term.get();
        let forced = self.asked("storage");
        let directory = Rc::new(Directory::open(forced.as_deref()).await);
        let browser = self.scope.navigator().user_agent().unwrap_or_default();
        let remembered = Rc::new(Remembered::open(browser).await);
        if self.term.get() != term {
            return;
        }
        self.directory.replace(Some(directory));
        self.remembered.replace(Some(remembered));
        self.load_engine().await;
    }

    /// Closes every file and ends the engine.
    fn close(&self) {
        self.term.set(self.term.get().wrapping_add(1));
        self.fetches.abort_all();
        self.snapshots.forget_all();
        self.session.replace(Session::new());
        self.directory.replace(None);
        self.remembered.replace(None);
        self.lost_lanes.borrow_mut().clear();
        self.hand_over(None);
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
        let term = self.term.get();
        let loaded = lanes::load(&self.scope, wish).await;
        if self.term.get() != term {
            return;
        }
        let input = match loaded {
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
        if let Some((link, bytes)) = peers::said(data) {
            return self.give(Input::PeerSaid { link, bytes });
        }
        let heard = wires::unpack(data);
        let heard = heard.and_then(|(bytes, files)| Some((decode::<Command>(&bytes).ok()?, files)));
        let Some((command, files)) = heard else {
            return self.tell(&Event::Failed {
                subject: Subject::Start,
                error: unreadable(),
            });
        };
        let attached = self.files.borrow_mut().keep(files);
        self.tab(TabInput::Page { command, attached });
    }

    /// One input for the session, and everything that it wants then.
    fn give(self: &Rc<Self>, input: BrowserInput) {
        // Commands come from the tab, which holds them back itself.
        if !matches!(input, Input::Command { .. }) && self.is_in_doubt() {
            return self.doubted.borrow_mut().push(input);
        }
        let now_ms = self.now_ms();
        self.session.borrow_mut().handle(now_ms, input);
        let mail = Mail::default();
        loop {
            // The session is not borrowed while its wish is fulfilled.
            let Some(output) = self.session.borrow_mut().poll() else {
                return self.post(&mail);
            };
            self.perform(output, &mail);
        }
    }

    fn perform(self: &Rc<Self>, output: Output, mail: &Mail) {
        match output {
            Output::Event(event) => self.tab(TabInput::Session(event)),
            Output::Address { source, url } => self.sources.name(source, &url),
            Output::Fetch { fetch, source, ask } => self.fetch(fetch, source, ask),
            Output::FetchMore(fetch) => {
                self.later_fetched(fetch, self.more_when_there_is_room(fetch))
            }
            Output::AbortFetch(fetch) => self.fetches.abort(fetch),
            Output::WakeAt(at_ms) => self.wake_at(at_ms),
            Output::NeedBytes { source, at, len } => {
                let bytes = self.sources.read(source, at, len);
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
                let lent = match &op {
                    FileOp::Lend(source) => Some(self.sources.lend(*source)),
                    _ => None,
                };
                self.later(async move {
                    let answer = match (lent, directory) {
                        (Some(lent), _) => lent,
                        (None, Some(directory)) => directory.run(op).await,
                        (None, None) => Err(store::StoreError::Closed),
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
            Output::PeerSend { link, bytes } => mail.put(link, &bytes),
            Output::ReadStored { model, piece } => self.read_stored(model, piece),
            Output::ReleaseStored(model) => self.snapshots.forget(model),
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
        let term = self.term.get();
        spawn_local(async move {
            let input = input.await;
            if worker.term.get() == term {
                worker.give(input);
            }
        });
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

    fn tell(&self, event: &Event) {
        let Ok(bytes) = encode(event) else {
            return;
        };
        let buffer = Uint8Array::from(bytes.as_slice()).buffer();
        let data = match self.file_of(event) {
            Some(file) => Array::of2(&buffer, &file).into(),
            None => JsValue::from(&buffer),
        };
        let transfer = Array::of1(&buffer);
        if self
            .scope
            .post_message_with_transfer(&data, &transfer)
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

fn unreadable() -> ErrorReport {
    words::report(
        TrResult::InvalidArgument,
        Stage::Start,
        "a message of the page is not one of this version",
        "reload the page",
    )
}
