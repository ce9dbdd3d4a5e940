//! How fast bytes come, and how long the rest will take.

use std::collections::VecDeque;

use super::Millis;

/// Speed is judged over the last eight seconds: long enough to be calm, short enough to be true.
const WINDOW_MS: u64 = 8_000;
/// Samples closer together than this replace one another, which bounds the queue to about 64.
const SPACING_MS: u64 = 125;
/// Below this a speed would be a guess.
const SPAN_MS_MIN: u64 = 500;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pace {
    samples: VecDeque<(Millis, u64)>,
}

impl Pace {
    /// `done` bytes are there at `now`. A count that falls begins a new phase.
    pub fn note(&mut self, now: Millis, done: u64) {
        if self
            .samples
            .back()
            .is_some_and(|&(at, bytes)| done < bytes || now < at)
        {
            self.samples.clear();
        }
        let len = self.samples.len();
        if len >= 2 && now - self.samples[len - 2].0 < SPACING_MS {
            self.samples.pop_back();
        }
        self.samples.push_back((now, done));
        while self.samples.len() > 2 && now - self.samples[0].0 > WINDOW_MS {
            self.samples.pop_front();
        }
    }

    pub fn bytes_per_second(&self) -> Option<u64> {
        let (&(from, before), &(to, after)) = (self.samples.front()?, self.samples.back()?);
        let span = to - from;
        if span < SPAN_MS_MIN || after == before {
            return None;
        }
        Some((u128::from(after - before) * 1000 / u128::from(span)) as u64)
    }

    pub fn seconds_left(&self, total: u64) -> Option<u64> {
        let speed = self.bytes_per_second()?.max(1);
        let &(_, done) = self.samples.back()?;
        Some(total.saturating_sub(done).div_ceil(speed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(samples: &[(Millis, u64)]) -> Pace {
        let mut pace = Pace::default();
        for &(at, bytes) in samples {
            pace.note(at, bytes);
        }
        pace
    }

    /// Speeds are bytes divided by seconds, by hand.
    #[test]
    fn speed_is_over_the_window() {
        type Case = (&'static [(Millis, u64)], Option<u64>, Option<u64>);
        let cases: [Case; 8] = [
            (&[], None, None),
            (&[(0, 5)], None, None),
            (&[(0, 0), (499, 499)], None, None),
            (&[(0, 0), (500, 500)], Some(1000), Some(10)),
            // A resumed import starts above zero; what was there is not speed.
            (&[(0, 8_000), (1000, 9_000)], Some(1000), Some(2)),
            // A stall says nothing rather than "for ever".
            (&[(0, 700), (4000, 700)], None, None),
            // A new phase starts over.
            (
                &[(0, 0), (1000, 9_000), (1100, 0), (2100, 100)],
                Some(100),
                Some(104),
            ),
            // The fast start is forgotten: 2,000 ms is the oldest sample within the window.
            (
                &[
                    (0, 0),
                    (1_000, 5_000),
                    (2_000, 5_100),
                    (6_000, 5_500),
                    (10_000, 5_900),
                ],
                Some(100),
                Some(46),
            ),
        ];
        for (samples, speed, left) in cases {
            let pace = pace(samples);
            assert_eq!(pace.bytes_per_second(), speed, "{samples:?}");
            assert_eq!(pace.seconds_left(10_500), left, "{samples:?}");
        }
    }

    #[test]
    fn a_clock_that_goes_back_starts_over() {
        assert_eq!(
            pace(&[(5_000, 10), (1_000, 20), (2_000, 30)]).bytes_per_second(),
            Some(10)
        );
    }

    #[test]
    fn many_reports_stay_bounded() {
        let mut pace = Pace::default();
        for at in 0..100_000u64 {
            pace.note(at, at * 10);
        }
        assert_eq!(pace.bytes_per_second(), Some(10_000));
        assert!(pace.samples.len() <= 66, "{}", pace.samples.len());
    }
}
