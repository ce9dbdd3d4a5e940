//! How many threads: never simply all cores, but as many as made the engine faster just now.
//!
//! Processors that a browser counts may be slow ones, busy ones, or halves of others, so a few
//! meetings are timed with ever more workers. Pure: the shell holds the clock.

/// More workers than this cost memory and help no model that a browser can hold.
pub const CAP: u32 = 8;
/// The most that may be asked for in the page's address, also beyond the processors.
pub const ASKED_MAX: u32 = 16;
/// Meetings of one timing: some two milliseconds with one worker.
pub const ROUNDS: u32 = 16;
/// Timings of each number; the least counts, because others can only add time.
const TIMINGS: u32 = 3;
/// One more worker must save at least this part of the time: what it saves less is lost again to
/// other programs, and to the heat.
const GAIN: f64 = 0.07;
/// Timings end here, so that a start is never much delayed.
pub const BUDGET_MS: f64 = 60.0;

/// Times numbers of workers, fewest first, and stops when more do not help.
#[derive(Debug)]
pub struct Choice {
    cap: u32,
    trying: u32,
    timings: u32,
    least_ms: f64,
    best: (u32, f64),
    spent_ms: f64,
}

impl Choice {
    /// Between one worker and `cap`.
    pub fn new(cap: u32) -> Choice {
        Choice {
            cap: cap.max(1),
            trying: 1,
            timings: 0,
            least_ms: f64::INFINITY,
            best: (1, f64::INFINITY),
            spent_ms: 0.0,
        }
    }

    /// So many workers are to be timed; `None` when the choice is made.
    pub fn next(&self) -> Option<u32> {
        (self.trying <= self.cap && self.spent_ms < BUDGET_MS).then_some(self.trying)
    }

    /// Takes the time of [`ROUNDS`] meetings of the number that [`Choice::next`] named.
    pub fn took(&mut self, ms: f64) {
        self.spent_ms += ms;
        self.least_ms = self.least_ms.min(ms);
        self.timings += 1;
        if self.timings < TIMINGS {
            return;
        }
        if self.least_ms < self.best.1 * (1.0 - GAIN) || self.trying == 1 {
            self.best = (self.trying, self.least_ms);
        } else if self.trying >= self.best.0 + 2 {
            // Two numbers in a row that did not help.
            self.trying = self.cap;
        }
        self.trying += 1;
        self.timings = 0;
        self.least_ms = f64::INFINITY;
    }

    pub fn chosen(&self) -> u32 {
        self.best.0
    }
}

/// How many workers are started, of which the timings then choose: `asked` if the page's address
/// says a number, at most one for each processor otherwise.
pub fn to_start(asked: Option<u32>, processors: u32) -> u32 {
    match asked {
        Some(asked) => asked.clamp(1, ASKED_MAX),
        None => processors.clamp(1, CAP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(cap: u32, ms: impl Fn(u32) -> f64) -> (u32, u32) {
        let mut choice = Choice::new(cap);
        let mut timings = 0;
        while let Some(workers) = choice.next() {
            choice.took(ms(workers));
            timings += 1;
        }
        (choice.chosen(), timings)
    }

    /// The times are made up; the answers follow from the rule in the module's head.
    #[test]
    fn as_many_as_help() {
        // Perfect sharing.
        assert_eq!(chosen(8, |workers| 2.0 / f64::from(workers)).0, 8);
        // Four fast processors.
        assert_eq!(chosen(8, |workers| 2.0 / f64::from(workers.min(4))).0, 4);
        // Waking costs more than the work.
        assert_eq!(chosen(4, |workers| 2.0 * f64::from(workers)).0, 1);
        // Two halves of one processor: a fifth is gained, and no more by a third.
        let halves = |workers| [2.0, 1.6, 1.55][workers as usize - 1];
        assert_eq!(chosen(3, halves).0, 2);
        // A dent at three is stepped over, two in a row are not.
        assert_eq!(
            chosen(4, |workers| [2.0, 1.2, 1.3, 0.9][workers as usize - 1]).0,
            4
        );
        assert_eq!(chosen(1, |_| 1.0).0, 1);
    }

    #[test]
    fn the_budget_ends_the_timings() {
        let (workers, timings) = chosen(8, |workers| 45.0 / f64::from(workers));
        assert_eq!((workers, timings), (1, 2));
    }

    #[test]
    fn what_is_started() {
        assert_eq!(to_start(None, 2), 2);
        assert_eq!(to_start(None, 64), CAP);
        assert_eq!(to_start(None, 0), 1);
        assert_eq!(to_start(Some(3), 2), 3);
        assert_eq!(to_start(Some(0), 2), 1);
        assert_eq!(to_start(Some(1000), 2), ASKED_MAX);
    }
}
