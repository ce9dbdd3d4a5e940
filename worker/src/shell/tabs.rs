//! Hands of the tab: what it wants said, held and watched.

use std::collections::BTreeMap;
use std::rc::Rc;

use js_sys::{Array, Date, Math, Reflect};
use protocol::{ClientId, Edition, Tell};
use wasm_bindgen::prelude::*;
use web_sys::{Blob, DedicatedWorkerGlobalScope, File, UrlSearchParams};

use super::locks::{self, Way};
use super::wires::Wires;
use super::{Input, Worker};
use crate::tabs::{TabInput, TabOutput};

const TICK_MS: i32 = 1_000;
/// Set by `worker.js`.
const BUILD: &str = "tinyrustlmBuild";

/// File handles as long as anything may still want them. Those that came together have numbers in a
/// row and are found by the first.
#[derive(Default)]
pub struct Files {
    last: u32,
    files: BTreeMap<u32, Vec<File>>,
}

impl Files {
    /// The number of the first; nothing for bytes that are no files.
    pub fn keep(&mut self, files: Vec<Blob>) -> Option<u32> {
        let files = files.into_iter().map(|file| file.dyn_into::<File>().ok());
        let files: Vec<File> = files.collect::<Option<_>>()?;
        if files.is_empty() {
            return None;
        }
        let first = self.last.wrapping_add(1);
        self.last = self.last.wrapping_add(files.len() as u32);
        self.files.insert(first, files);
        Some(first)
    }
}

/// A fresh name for this tab, and which page it works for.
pub fn tab_of(scope: &DedicatedWorkerGlobalScope) -> (ClientId, Edition) {
    let half = || (Math::random() * f64::from(u32::MAX)) as u64;
    let query = UrlSearchParams::new_with_str(&scope.location().search()).ok();
    let opened = query.and_then(|query| query.get("opened"));
    let edition = Edition {
        build: build(scope),
        opened_ms: opened.and_then(|text| text.parse().ok()).unwrap_or(0),
    };
    (ClientId((half() << 32) | half()), edition)
}

fn build(scope: &JsValue) -> String {
    let build = Reflect::get(scope, &BUILD.into()).ok();
    build
        .and_then(|build| build.as_string())
        .unwrap_or_default()
}

/// The address as the service worker answers it from this build's files only.
pub fn of_this_build(scope: &JsValue, address: &str) -> String {
    format!("{address}?build={}", build(scope))
}

impl Worker {
    /// Lives, hears, and looks for the owner.
    pub(super) async fn join(self: Rc<Self>) {
        if locks::live(self.me).await {
            let life = Array::of1(&locks::life_of(self.me).into());
            // The page watches the lock, and so learns of an end that makes no event.
            self.scope.post_message(&life).unwrap_or_default();
            self.open_wires();
        }
        let ticking = Rc::clone(&self);
        let tick = Closure::<dyn FnMut()>::new(move || {
            let now_ms = Date::now() as u64;
            ticking.tab(TabInput::Tick { now_ms });
        });
        let ticks = tick.into_js_value();
        let begun = self
            .scope
            .set_interval_with_callback_and_timeout_and_arguments_0(ticks.unchecked_ref(), TICK_MS);
        // Without ticks a silent owner is not noticed, and nothing else.
        begun.ok();
        self.drain_tab();
    }

    fn open_wires(self: &Rc<Self>) {
        let (called, told) = (Rc::clone(self), Rc::clone(self));
        let wires = Wires::new(
            self.me,
            move |call| called.tab(TabInput::Call(call)),
            move |message, file| {
                told.handed.replace(file);
                told.tab(TabInput::Told(message));
            },
        );
        self.wires.replace(Some(Rc::new(wires)));
    }

    /// One input for the tab, and everything that it wants then.
    pub(super) fn tab(self: &Rc<Self>, input: TabInput) {
        self.tab.borrow_mut().handle(input);
        self.drain_tab();
    }

    fn drain_tab(self: &Rc<Self>) {
        loop {
            // The tab is not borrowed while its wish is fulfilled.
            let Some(output) = self.tab.borrow_mut().poll() else {
                return;
            };
            self.do_for_tab(output);
        }
    }

    fn do_for_tab(self: &Rc<Self>, output: TabOutput) {
        let wires = self.wires.borrow().clone();
        match (output, wires) {
            (TabOutput::Page(event), _) => self.tell(&event),
            (TabOutput::Call(call), Some(wires)) => wires.call(&call),
            (TabOutput::Listen(epoch), Some(wires)) => {
                let worker = Rc::clone(self);
                wires.listen(epoch, move |asked, files| {
                    let attached = worker.files.borrow_mut().keep(files);
                    worker.tab(TabInput::Asked { asked, attached });
                });
            }
            (TabOutput::Ask { asked, attached }, Some(wires)) => {
                let files = self.files.borrow();
                let files = attached.and_then(|number| files.files.get(&number));
                let files: Vec<&Blob> = files.into_iter().flatten().map(AsRef::as_ref).collect();
                wires.ask(&asked, &files);
            }
            (TabOutput::Tell { client, told }, Some(wires)) => {
                let file = match &told.tell {
                    Tell::Event(event) => self.file_of(event),
                    Tell::Welcome => None,
                };
                wires.tell(client, &told, file.as_ref());
            }
            (TabOutput::Watch(client), Some(wires)) => {
                let worker = Rc::clone(self);
                locks::when_gone(client, move || {
                    wires.forget(client);
                    worker.tab(TabInput::Gone(client));
                });
            }
            (TabOutput::Work, _) => {
                wasm_bindgen_futures::spawn_local(Rc::clone(self).work());
            }
            (TabOutput::Session { command, attached }, _) => {
                if let Some(number) = attached
                    && let Some(files) = self.files.borrow().files.get(&number)
                {
                    for (file, number) in files.iter().zip(number..) {
                        self.sources.attach(number, file.clone());
                    }
                }
                self.give(Input::Command { command, attached });
            }
            (TabOutput::LetGo(number), _) => {
                self.files.borrow_mut().files.remove(&number);
            }
            (TabOutput::Stop, wires) => {
                self.close();
                if let Some(wires) = wires {
                    wires.stop_listening();
                }
                if let Some(give_back) = self.give_back.take() {
                    // A promise's own function cannot fail.
                    give_back.call0(&JsValue::NULL).ok();
                }
            }
            (TabOutput::Check, _) => self.check_up(),
            (TabOutput::Seek, _) => self.own(Way::Wait),
            (TabOutput::Steal, _) => self.own(Way::Steal),
            // A tab that is alone has nobody to say it to.
            (_, None) => {}
        }
    }

    /// Before anything is done: after a sleep it is not certain that this worker may.
    pub(super) fn is_in_doubt(self: &Rc<Self>) -> bool {
        let now_ms = Date::now() as u64;
        self.tab(TabInput::Work { now_ms });
        self.tab.borrow().is_in_doubt()
    }

    /// After a sleep: is the lock still held, and are engine and files what they were?
    fn check_up(self: &Rc<Self>) {
        let worker = Rc::clone(self);
        let term = self.term.get();
        wasm_bindgen_futures::spawn_local(async move {
            let holds = locks::holds(worker.me).await;
            let is_well = holds && worker.session.borrow_mut().is_well();
            worker.tab(TabInput::Checked { is_well });
            let doubted = worker.doubted.take();
            if worker.term.get() == term {
                doubted.into_iter().for_each(|input| worker.give(input));
            }
        });
    }

    fn own(self: &Rc<Self>, way: Way) {
        let (worker, loser) = (Rc::clone(self), Rc::clone(self));
        let granted = move |give_back| {
            worker.give_back.replace(give_back);
            let now_ms = Date::now() as u64;
            worker.tab(TabInput::Granted { now_ms });
        };
        locks::own(way, granted, move || loser.tab(TabInput::Deposed));
    }
}
