//! Web Locks: who owns the files, and who is still alive.
//!
//! A lock falls free when its worker ends, however it ends; nothing else tells so surely.

use js_sys::{Function, Object, Promise, Reflect};
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
    let answered = Promise::new(&mut |answer, _| {
        let granted = Closure::once_into_js(move |_: JsValue| -> JsValue {
            // A promise's own function cannot fail.
            answer.call1(&JsValue::NULL, &JsValue::TRUE).ok();
            Promise::new(&mut |_, _| {}).into()
        });
        let asked = locks.request(&life_of(client), &Object::new(), granted.unchecked_ref());
        // What is refused, in a sandboxed frame for one, cannot be waited for either.
        asked.ok();
    });
    JsFuture::from(answered).await.is_ok()
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
    let mut granted = Some(granted);
    let held = Closure::once_into_js(move |_: JsValue| -> JsValue {
        let mut give_back = None;
        let until = Promise::new(&mut |resolve, _| give_back = Some(resolve));
        if let Some(granted) = granted.take() {
            granted(give_back);
        }
        until.into()
    });
    let Ok(asked) = locks.request(OWNER, &options, held.unchecked_ref()) else {
        return;
    };
    wasm_bindgen_futures::spawn_local(async move {
        if JsFuture::from(asked).await.is_err() {
            lost();
        }
    });
}

fn locks() -> Option<Locks> {
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).ok()?;
    let locks = Reflect::get(&navigator, &"locks".into()).ok()?;
    locks.is_object().then(|| locks.unchecked_into())
}
