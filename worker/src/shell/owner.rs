//! One owner of the files in the whole origin: the worker that holds the Web Lock.

use js_sys::{Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

const LOCK: &str = "tinyrustlm-owner";

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

/// Takes the lock if nobody has it. Also `true` where there are no locks at all: then files that
/// are open elsewhere are refused one by one.
pub async fn try_to_own() -> bool {
    let options = Object::new();
    let set = Reflect::set(&options, &"ifAvailable".into(), &JsValue::TRUE);
    match set {
        Ok(_) => own(&options).await,
        Err(_) => true,
    }
}

/// Waits for the lock: until the other tab is closed.
pub async fn wait_to_own() {
    own(&Object::new()).await;
}

async fn own(options: &Object) -> bool {
    let Some(locks) = locks() else {
        return true;
    };
    let answered = Promise::new(&mut |answer, _| {
        // The lock is held until the promise that this gives back is settled, which is never.
        let granted = Closure::once_into_js(move |lock: JsValue| -> JsValue {
            let is_ours = !lock.is_null() && !lock.is_undefined();
            // A promise's own function cannot fail.
            answer.call1(&JsValue::NULL, &is_ours.into()).ok();
            match is_ours {
                true => Promise::new(&mut |_, _| {}).into(),
                false => JsValue::UNDEFINED,
            }
        });
        let asked = locks.request(LOCK, options, granted.unchecked_ref());
        // What is refused, in a sandboxed frame for one, cannot be waited for either.
        asked.ok();
    });
    JsFuture::from(answered)
        .await
        .is_ok_and(|answer| answer.is_truthy())
}

fn locks() -> Option<Locks> {
    let navigator = Reflect::get(&js_sys::global(), &"navigator".into()).ok()?;
    let locks = Reflect::get(&navigator, &"locks".into()).ok()?;
    locks.is_object().then(|| locks.unchecked_into())
}
