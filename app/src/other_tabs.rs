//! Other tabs' pages: what they have saved is shown here too.

use wasm_bindgen::prelude::*;
use web_sys::{BroadcastChannel, MessageEvent};

use crate::state::ConversationId;

const CHANNEL: &str = "tinyrustlm-saved";

/// Open as long as the page.
pub struct OtherTabs(Option<BroadcastChannel>);

impl OtherTabs {
    /// `hear` is told which conversation another tab has saved or deleted.
    pub fn listen(hear: impl Fn(ConversationId) + 'static) -> OtherTabs {
        let channel = BroadcastChannel::new(CHANNEL).ok();
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |message: MessageEvent| {
            let text = message.data().as_string();
            if let Some(id) = text.and_then(|text| text.parse().ok()) {
                hear(ConversationId(id));
            }
        });
        if let Some(channel) = &channel {
            let function = on_message.into_js_value();
            channel.set_onmessage(Some(function.unchecked_ref()));
        }
        OtherTabs(channel)
    }

    pub fn tell(&self, id: ConversationId) {
        if let Some(channel) = &self.0 {
            let text = JsValue::from_str(&id.0.to_string());
            // A channel refuses only when it is closed.
            channel.post_message(&text).unwrap_or_default();
        }
    }
}
