//! Known-answer tests that a lane runs before it is trusted.

use protocol::abi::SelfTest;

pub fn self_test() -> SelfTest {
    SelfTest::default()
}
