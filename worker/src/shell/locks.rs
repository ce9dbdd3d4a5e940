//! Web Locks: who owns the files, and who is still alive.
//!
//! A lock falls free when its worker ends, however it ends; nothing else tells so surely.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::{Array, Function, Object, Promise, Reflect};
use protocol::ClientId;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

const OWNER: &str = "tinyrustlm-owner";

#[wasm_bindgen]
extern "C" {
    /// `navigator.locks`, which web-sys has only behind its unstable switch.
    type Locks;
    #[wasm_bindgen(method, catch)]
    fn request(
        this: &Locks,
        name: &str,
        options: &Object,
        granted: &Function,
    ) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn query(this: &Locks) -> Result<Promise, JsValue>;
}

/// How the owner's lock is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Wait,
    /// From whoever has it.
    Steal,
}

/// The name of the lock that says that a tab's worker lives.
pub fn life_of(client: ClientId) -> String {
    format!("tinyrustlm-tab-{:016x}", client.0)
}

/// Holds this client's own lock until its worker ends. False where there are no locks: then no
/// tab can know of another.
pub async fn live(client: ClientId) -> bool {
    let Some(locks) = locks() else {
        return false;
    };
    let mut asked = None;
    let answered = Promise::new(&mut |answer, _| {
        let granted = Closure::once_into_js(move |_: JsValue| -> JsValue {
            // A promise's own function cannot fail.
            answer.call1(&JsValue::NULL, &JsValue::TRUE).ok();
            Promise::new(&mut |_, _| {}).into()
        });
        let name = life_of(client);
        asked = locks
            .request(&name, &Object::new(), granted.unchecked_ref())
            .ok();
    });
    // What is asked for ends only with the lock, unless it is refused, as in a sandboxed frame.
    match asked {
        Some(asked) => JsFuture::from(Promise::race(&Array::of2(&answered, &asked)))
            .await
            .is_ok(),
        None => false,
    }
}

/// Calls back when the client's worker has ended.
pub fn when_gone(client: ClientId, gone: impl FnOnce() + 'static) {
    let Some(locks) = locks() else { return };
    // The lock is given back at once.
    let granted = Closure::once_into_js(move |_: JsValue| gone());
    let asked = locks.request(&life_of(client), &Object::new(), granted.unchecked_ref());
    asked.ok();
}

/// Asks for the owner's lock. `granted` gets the function that gives it back, `lost` is called if
/// another tab takes it.
pub fn own(
    way: Way,
    granted: impl FnOnce(Option<Function>) + 'static,
    lost: impl FnOnce() + 'static,
) {
    let Some(locks) = locks() else {
        return granted(None);
    };
    let options = Object::new();
    if way == Way::Steal {
        // A plain object takes every property.
        Reflect::set(&options, &"steal".into(), &JsValue::TRUE).ok();
    }
    let granted = Rc::new(Cell::new(Some(granted)));
    let on_grant = Rc::clone(&granted);
    let held = Closure::once_into_js(move |_: JsValue| -> JsValue {
        let mut give_back = None;
        let until = Promise::new(&mut |resolve, _| give_back = Some(resolve));
        if let Some(granted) = on_grant.take() {
            granted(give_back);
        }
        until.into()
    });
    let asked = locks.request(OWNER, &options, held.unchecked_ref());
    wasm_bindgen_futures::spawn_local(async move {
        let ended = match asked {
            Ok(asked) => JsFuture::from(asked).await,
            Err(refused) => Err(refused),
        };
        if ended.is_err() {
            match granted.take() {
                // Where locks are refused no tab can know of another, as where there are none.
                Some(granted) => granted(None),
                None => lost(),
            }
        }
    });
}

/// Whether the owner's lock is this worker's. Where nobody can say, it is believed.
pub async fn holds(me: ClientId) -> bool {
    let Some(Ok(asked)) = locks().map(|locks| locks.query()) else {
        return true;
    };
    let Ok(answer) = JsFuture::from(asked).await else {
        return true;
    };
    let field = |of: &JsValue, name: &str| Reflect::get(of, &name.into()).ok();
    let Some(held) = field(&answer, "held").and_then(|held| held.dyn_into::<Array>().ok()) else {
        return true;
    };
    let held = held.to_vec();
    // The browser has a name of its own for every worker, by which the two locks are compared.
    let holder = |name: &str| {
        let has_name = |lock: &&JsValue| field(lock, "name").is_some_and(|it| it == name);
        let lock = held.iter().find(has_name)?;
        field(lock, "clientId")?.as_string()
    };
    let own = holder(&life_of(me));
    own.is_none() || own == holder(OWNER)
}

fn locks() -> Option<Locks> {
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).ok()?;
    let locks = Reflect::get(&navigator, &"locks".into()).ok()?;
    locks.is_object().then(|| locks.unchecked_into())
}
