//! How long a waiter looks at a word before it sleeps.
//!
//! On a machine of our own the others come within microseconds, and waking a sleeper takes longer
//! than all the work between two meetings. On a busy one they come when the system lets them, and
//! who spins until then takes time from them. The caller learns which it is: where a worker keeps
//! it waiting for long, all look only briefly, and ever longer while that does not happen again.

use core::hint::spin_loop;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// After the caller waited in vain: some four microseconds.
const LEAST: u32 = match cfg!(target_arch = "wasm32") {
    // Wasm has no instruction to spin with: a look is a bare load, and takes about a cycle.
    true => 10_000,
    // An x86 processor pauses for 40 to 140 cycles.
    false => 100,
};
/// Some eighty microseconds: about what putting a thread to sleep and waking it costs.
const MOST: u32 = match cfg!(target_arch = "wasm32") {
    true => 200_000,
    false => 1_500,
};

/// A wait that paid adds this part: a token has some 150 meetings, so patience is back after two.
const GROWTH: u32 = 64;

/// The patience of a team.
pub struct Looks(AtomicU32);

impl Looks {
    pub const fn new() -> Looks {
        Looks(AtomicU32::new(LEAST))
    }

    /// What `look` found; `None` when it is time to sleep.
    pub fn until<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        for _ in 0..self.0.load(Relaxed) {
            if let Some(found) = look() {
                return Some(found);
            }
            spin_loop();
        }
        None
    }

    /// The caller's wait for its workers has paid, or has not.
    pub fn learn(&self, paid: bool) {
        let looks = self.0.load(Relaxed);
        let next = match paid {
            true => (looks + looks.div_ceil(GROWTH)).min(MOST),
            false => LEAST,
        };
        self.0.store(next, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_what_it_gave() {
        let looks = Looks::new();
        for _ in 0..500 {
            looks.learn(true);
        }
        let seen = core::cell::Cell::new(0);
        let never = || {
            seen.set(seen.get() + 1);
            None::<()>
        };
        assert_eq!(looks.until(never), None);
        looks.learn(false);
        assert_eq!(looks.until(never), None);
        assert_eq!(seen.get(), MOST + LEAST);
        assert_eq!(looks.until(|| Some(7)), Some(7));
    }
}
