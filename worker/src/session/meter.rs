//! How often progress is told.

/// Ten events a second look smooth; more only keep the page busy.
pub const INTERVAL_MS: u64 = 100;

/// Lets the first and the last report of a run pass, and between them one in [`INTERVAL_MS`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    told_ms: Option<u64>,
}

impl Meter {
    pub fn is_due(&mut self, now_ms: u64, done: u64, total: u64) -> bool {
        let due = match self.told_ms {
            None => true,
            Some(told) => now_ms.saturating_sub(told) >= INTERVAL_MS || done >= total,
        };
        if due {
            self.told_ms = Some(now_ms);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_last_and_ten_a_second() {
        let mut meter = Meter::default();
        let told: Vec<u64> = (0..=1000)
            .filter(|ms| meter.is_due(*ms, *ms, 1000))
            .collect();
        assert_eq!(told, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
        assert!(
            meter.is_due(1001, 1000, 1000),
            "the last one is never held back"
        );
    }
}
