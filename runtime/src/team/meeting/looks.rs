//! How long a waiter looks at a word before it sleeps.
//!
//! On a machine of our own the others come within microseconds, and waking a sleeper takes longer
//! than all the work between two meetings. On a busy one they come when the system lets them, and
//! who spins until then takes time from them.
//!
//! The caller learns which it is from long looks alone: who looks briefly finds sleepers, who are
//! always late, and would look briefly for ever. So a team begins with long looks, gives them up
//! where the caller often waits longer still, and tries them again after a while.

use core::hint::spin_loop;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// While long looks do not pay: some four microseconds.
const LEAST: u32 = match cfg!(target_arch = "wasm32") {
    // Wasm has no instruction to spin with: a look is a bare load, and takes about a cycle.
    true => 10_000,
    // An x86 processor pauses for 40 to 140 cycles.
    false => 100,
};
/// Some quarter of a millisecond: a few times what putting a thread to sleep and waking it costs,
/// and what the parts of a large product differ by.
const MOST: u32 = match cfg!(target_arch = "wasm32") {
    true => 600_000,
    false => 5_000,
};

/// What a wait in vain adds to the doubt; each that paid takes one away. A token has some 150
/// meetings, of which one or two may be late on an idle machine.
const VAIN: u32 = 64;
/// Doubt that ends long looks.
const TOO_MUCH: u32 = 96;
/// Meetings with brief looks before long ones are tried again: some two tokens.
const REST: u32 = 300;

/// The patience of a team. The caller alone learns; all look.
pub struct Looks {
    count: AtomicU32,
    doubt: AtomicU32,
    /// Meetings until long looks are tried again.
    rest: AtomicU32,
}

impl Looks {
    pub const fn new() -> Looks {
        Looks {
            count: AtomicU32::new(MOST),
            doubt: AtomicU32::new(0),
            rest: AtomicU32::new(0),
        }
    }

    /// What `look` found; `None` when it is time to sleep.
    pub fn until<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        for _ in 0..self.count.load(Relaxed) {
            if let Some(found) = look() {
                return Some(found);
            }
            spin_loop();
        }
        None
    }

    /// The caller's wait for its workers has paid, or has not.
    pub fn learn(&self, paid: bool) {
        let rest = self.rest.load(Relaxed);
        if rest > 0 {
            self.rest.store(rest - 1, Relaxed);
            if rest == 1 {
                self.doubt.store(0, Relaxed);
                self.count.store(MOST, Relaxed);
            }
            return;
        }
        let doubt = self.doubt.load(Relaxed);
        let doubt = match paid {
            true => doubt.saturating_sub(1),
            false => doubt + VAIN,
        };
        self.doubt.store(doubt, Relaxed);
        if doubt >= TOO_MUCH {
            self.rest.store(REST, Relaxed);
            self.count.store(LEAST, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a waiter looks in vain.
    fn patience(looks: &Looks) -> u32 {
        let seen = core::cell::Cell::new(0);
        let never = || {
            seen.set(seen.get() + 1);
            None::<()>
        };
        assert_eq!(looks.until(never), None);
        seen.get()
    }

    #[test]
    fn patience_follows_what_it_gave() {
        let looks = Looks::new();
        assert_eq!(patience(&looks), MOST);
        // Now and then somebody is late.
        for _ in 0..20 {
            looks.learn(false);
            (0..VAIN).for_each(|_| looks.learn(true));
        }
        assert_eq!(patience(&looks), MOST);
        looks.learn(false);
        looks.learn(false);
        assert_eq!(patience(&looks), LEAST);
        assert_eq!(looks.until(|| Some(7)), Some(7));
    }

    /// Brief looks say nothing of long ones, whatever comes of them.
    #[test]
    fn long_looks_are_tried_again() {
        for paid in [true, false] {
            let looks = Looks::new();
            looks.learn(false);
            looks.learn(false);
            (1..REST).for_each(|_| looks.learn(paid));
            assert_eq!(patience(&looks), LEAST);
            looks.learn(paid);
            assert_eq!(patience(&looks), MOST);
            looks.learn(false);
            assert_eq!(patience(&looks), MOST);
        }
    }
}
