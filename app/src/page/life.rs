//! A page's sleep, and what it says to the script that started it.

use leptos::prelude::*;
use wasm_bindgen::prelude::*;

use super::Page;
use crate::saved;
use crate::state::Action;

impl Page {
    /// A page that is frozen or put aside gives the files up at once, and takes up its work when it
    /// is shown again. What happens here must not wait: nothing runs afterwards.
    pub(super) fn sleep_and_wake(self) {
        let sleep = move || {
            // A page that leaves in good order did not die of its load.
            saved::leave();
            self.act(Action::Asleep);
        };
        let wake = move || {
            if self.hands.with_value(|hands| hands.link.is_none()) {
                self.act(Action::Awake);
            }
        };
        std::mem::forget(window_event_listener_untyped("pagehide", move |_| sleep()));
        std::mem::forget(window_event_listener_untyped("pageshow", move |_| wake()));
        // These two come to the document, and do not bubble in every browser.
        let on_document = |name: &str, hear: Closure<dyn FnMut()>| {
            document()
                .add_event_listener_with_callback(name, hear.into_js_value().unchecked_ref())
                .unwrap_or_default();
        };
        on_document("freeze", Closure::new(sleep));
        on_document("resume", Closure::new(wake));
    }
}

/// The page's own query goes along, and what tells this page from those of other tabs.
pub fn worker_address() -> String {
    let query = window().location().search().unwrap_or_default();
    let root = document().document_element();
    let build = root.and_then(|root| root.get_attribute("data-build"));
    let opened = window().performance().map_or(0.0, |it| it.time_origin());
    let mark = if query.is_empty() { "?" } else { "&" };
    format!(
        "worker.js{query}{mark}opened={opened:.0}&build={}",
        build.unwrap_or_default()
    )
}

/// Says something to `boot.js`, which knows the service worker.
pub fn tell_boot(what: &str) {
    if let Ok(event) = web_sys::Event::new(what) {
        // The answer only says whether a listener cancelled the event.
        window().dispatch_event(&event).unwrap_or_default();
    }
}
