//! How much may still go out.

/// Fills with so many bytes a second and is emptied by what is sent. Overdrawn by at most one
/// message, so that a small limit still sends.
#[derive(Default)]
pub struct Bucket {
    bytes: i64,
    at_ms: u64,
}

/// What may be sent at once after a pause: the part of a second's bytes.
const BURST: i64 = 4;

impl Bucket {
    pub fn fill(&mut self, now_ms: u64, rate: u32) {
        let passed = now_ms.saturating_sub(self.at_ms).min(60_000) as i64;
        let gained = passed * i64::from(rate) / 1000;
        // Parts of a byte are not lost: the time stays until they are a whole one.
        if gained > 0 || rate == 0 {
            self.bytes = (self.bytes + gained).min(i64::from(rate) / BURST);
            self.at_ms = now_ms;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes <= 0
    }

    pub fn spend(&mut self, bytes: usize) {
        self.bytes -= bytes as i64;
    }

    /// Milliseconds until something may be sent again.
    pub fn wait_ms(&self, rate: u32) -> u64 {
        let lacking = (1 - self.bytes).max(0) as u64;
        lacking * 1000 / u64::from(rate.max(1)) + 1
    }
}
