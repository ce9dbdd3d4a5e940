//! Any bytes as one message: refused, or a message whose bytes are these.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p2p::Message;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = Message::decode(bytes) {
        assert_eq!(message.encode(), bytes);
    }
});
