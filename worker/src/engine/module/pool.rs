//! The browser's workers of one team, from their start to their end.
//!
//! The worker that owns the engine starts one more for each further thread, and goes back to its
//! event loop until all have acknowledged the module that they run.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use format::Digest;
use js_sys::{Array, Object, Promise, Reflect, WebAssembly};
use protocol::abi;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{DedicatedWorkerGlobalScope, Event, MessageEvent, Worker};

use crate::lane::ThreadFault;

/// Beside the worker's own script.
const SCRIPT: &str = "pool.js";
/// All must have acknowledged by then. A worker takes some ten milliseconds to start.
const START_MS: i32 = 5000;

/// What every worker of a team shares.
pub struct Spec<'a> {
    pub module: &'a WebAssembly::Module,
    pub memory: &'a WebAssembly::Memory,
    pub sha256: Digest,
    pub team: abi::Team,
}

/// Dropping it ends every worker.
pub struct Pool {
    workers: Vec<Worker>,
    lost: Rc<Cell<bool>>,
    /// Called for as long as the workers live.
    _hears: Vec<Closure<dyn FnMut(MessageEvent)>>,
    _mourns: Vec<Closure<dyn FnMut(Event)>>,
}

/// What has been heard so far.
#[derive(Default)]
struct Roll {
    acknowledged: Vec<bool>,
    fault: Option<ThreadFault>,
    /// Wakes who waits for all.
    wake: Option<js_sys::Function>,
}

impl Roll {
    fn is_over(&self) -> bool {
        self.fault.is_some() || self.acknowledged.iter().all(|here| *here)
    }

    fn hear(&mut self, index: usize, data: &JsValue, sha256: &str) {
        let words = data.dyn_ref::<Array>();
        let text = words.and_then(|words| words.get(1).as_string());
        let abi = words.and_then(|words| words.get(2).as_f64());
        match text.as_deref() == Some(sha256) && abi == Some(f64::from(abi::ABI_VERSION)) {
            true => self.acknowledged[index - 1] = true,
            false => self.fail(ThreadFault::OtherModule(index as u32)),
        }
        self.look();
    }

    fn fail(&mut self, fault: ThreadFault) {
        self.fault.get_or_insert(fault);
        self.look();
    }

    fn look(&mut self) {
        if self.is_over()
            && let Some(wake) = self.wake.take()
            && wake.call0(&JsValue::NULL).is_err()
        {
            // The function is a promise's own and cannot throw.
        }
    }
}

impl Pool {
    /// Starts workers 1 and up and waits until all have acknowledged, or one has failed, or the
    /// time is over.
    pub async fn start(
        scope: &DedicatedWorkerGlobalScope,
        spec: &Spec<'_>,
    ) -> Result<Pool, ThreadFault> {
        let others = spec.team.workers.saturating_sub(1) as usize;
        let roll = Rc::new(RefCell::new(Roll {
            acknowledged: vec![false; others],
            ..Roll::default()
        }));
        let mut pool = Pool {
            workers: Vec::new(),
            lost: Rc::default(),
            _hears: Vec::new(),
            _mourns: Vec::new(),
        };
        for index in 1..=others {
            pool.add(index, spec, &roll)?;
        }
        let waiting = Rc::clone(&roll);
        let until = Promise::new(&mut |resolve, _| {
            if scope
                .set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, START_MS)
                .is_err()
            {
                // A worker without a timer waits for the workers alone.
            }
            let mut roll = waiting.borrow_mut();
            roll.wake = Some(resolve);
            roll.look();
        });
        if JsFuture::from(until).await.is_err() {
            // It is only ever resolved.
        }
        let roll = roll.borrow();
        if let Some(fault) = roll.fault {
            return Err(fault);
        }
        match roll.acknowledged.iter().position(|here| !here) {
            Some(at) => Err(ThreadFault::NoAnswer(at as u32 + 1)),
            None => Ok(pool),
        }
    }

    fn add(
        &mut self,
        index: usize,
        spec: &Spec<'_>,
        roll: &Rc<RefCell<Roll>>,
    ) -> Result<(), ThreadFault> {
        let refused = |_: JsValue| ThreadFault::NotStarted(index as u32);
        let worker = Worker::new(SCRIPT).map_err(refused)?;
        let (heard, sha256) = (Rc::clone(roll), spec.sha256.to_string());
        let hear = Closure::<dyn FnMut(MessageEvent)>::new(move |message: MessageEvent| {
            heard.borrow_mut().hear(index, &message.data(), &sha256);
        });
        let (mourned, lost) = (Rc::clone(roll), Rc::clone(&self.lost));
        let mourn = Closure::<dyn FnMut(Event)>::new(move |error: Event| {
            // Otherwise it is taken for a failure of this worker too, and ends the page's session.
            error.prevent_default();
            lost.set(true);
            let fault = ThreadFault::NotStarted(index as u32);
            mourned.borrow_mut().fail(fault);
        });
        worker.set_onmessage(Some(hear.as_ref().unchecked_ref()));
        worker.set_onerror(Some(mourn.as_ref().unchecked_ref()));
        self._hears.push(hear);
        self._mourns.push(mourn);
        let sent = message(index, spec).and_then(|message| worker.post_message(&message));
        self.workers.push(worker);
        sent.map_err(refused)
    }

    /// A worker has failed since the start.
    pub fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Ends the workers from number `keep` on, who sleep and are not wanted.
    pub fn dismiss(&mut self, keep: u32) {
        let keep = keep.saturating_sub(1) as usize;
        for worker in self.workers.drain(keep.min(self.workers.len())..) {
            worker.terminate();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.set_onmessage(None);
            worker.set_onerror(None);
            worker.terminate();
        }
    }
}

fn message(index: usize, spec: &Spec<'_>) -> Result<Object, JsValue> {
    let message = Object::new();
    let set = |name: &str, value: &JsValue| Reflect::set(&message, &name.into(), value);
    let (team, before) = (&spec.team, index as u32 - 1);
    set("module", spec.module)?;
    set("memory", spec.memory)?;
    set("sha256", &spec.sha256.to_string().into())?;
    set("index", &(index as u32).into())?;
    set("stack", &(team.stack + before * team.stack_bytes).into())?;
    set("tls", &(team.tls + before * team.tls_bytes).into())?;
    set("tlsBytes", &team.tls_bytes.into())?;
    Ok(message)
}
