//! What helps a model that does not fit: one ladder for the browser and for the native program.

use alloc::vec::Vec;

use crate::abi::Plan;
use crate::{FitReport, KvFormat, Lever, Residency, Wish};

/// With less room than this nobody can talk.
pub const CONTEXT_LEAST: u32 = 512;

/// The wish with the most positions that fits, at most as many as it names and each time half as
/// many, down to [`CONTEXT_LEAST`]; if none fits, the plan with the least.
pub fn most_room<E>(
    wish: Wish,
    block_max: u64,
    measure: &mut impl FnMut(Wish) -> Result<Plan, E>,
) -> Result<Plan, E> {
    let mut wish = wish;
    loop {
        let plan = measure(wish)?;
        if plan.over(block_max).is_none() || wish.context / 2 < CONTEXT_LEAST {
            return Ok(plan);
        }
        wish.context /= 2;
    }
}

/// The ways in which a model fits that does not fit as it is asked for, the milder first: fewer
/// positions, coarser keys and values, a part of the weights read as it is needed, all of them.
///
/// A way that changes both the keys' format and the weights' place costs twice, so it is a way only
/// where it has room for more positions than every way before it.
pub fn ways_to_fit<E>(
    asked: Wish,
    block_max: u64,
    mut measure: impl FnMut(Wish) -> Result<Plan, E>,
) -> Result<Vec<Lever>, E> {
    let formats = KvFormat::ALL.into_iter();
    let formats: Vec<_> = formats.skip_while(|it| *it != asked.kv_format).collect();
    let places = Residency::ALL.into_iter();
    let places = places.skip_while(|it| *it != asked.residency);
    let mut ways: Vec<Lever> = Vec::new();
    for residency in places {
        for kv_format in formats.iter().copied() {
            let wish = Wish {
                kv_format,
                residency,
                ..asked
            };
            let plan = most_room(wish, block_max, &mut measure)?;
            let is_twice = kv_format != asked.kv_format && residency != asked.residency;
            let most = ways.iter().map(|way| way.wish.context).max().unwrap_or(0);
            if plan.over(block_max).is_none() && (!is_twice || plan.context > most) {
                ways.push(Lever {
                    wish: Wish {
                        context: plan.context,
                        ..wish
                    },
                    report: FitReport::of(&plan, None),
                });
            }
        }
    }
    Ok(ways)
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use super::*;

    const LAYERS: u64 = 80;
    const REST: u64 = 20;

    /// A model of 100 bytes of weights, whose keys and values take 4, 2 or 1 bytes for each 64
    /// positions. What is computed from that stands beside each limit below.
    fn measure(limit: u64) -> impl FnMut(Wish) -> Result<Plan, Infallible> {
        move |wish| {
            let position = match wish.kv_format {
                KvFormat::F32 => 4,
                KvFormat::F16 => 2,
                KvFormat::Int8 => 1,
            };
            let kv = u64::from(wish.context) / 64 * position;
            let weights = match wish.residency {
                Residency::Full => LAYERS + REST,
                // As many layers of ten bytes as there is room for.
                Residency::Hybrid => REST + (limit.saturating_sub(kv + REST) / 10 * 10).min(LAYERS),
                Residency::Paged => 10,
            };
            Ok(Plan {
                weights,
                kv,
                total: weights + kv,
                limit,
                context: wish.context,
                kv_format: wish.kv_format.code(),
                residency: wish.residency.code(),
                ..Plan::default()
            })
        }
    }

    fn ways(limit: u64, kv_format: KvFormat) -> Vec<(u32, KvFormat, Residency)> {
        let asked = Wish {
            context: 4096,
            kv_format,
            residency: Residency::Full,
        };
        let Ok(ways) = ways_to_fit(asked, u64::MAX, measure(limit));
        for way in &ways {
            assert!(way.report.total <= limit, "{way:?}");
        }
        let told = ways.into_iter().map(|way| way.wish);
        told.map(|it| (it.context, it.kv_format, it.residency))
            .collect()
    }

    #[test]
    fn the_milder_way_comes_first() {
        use KvFormat::{F16, F32, Int8};
        use Residency::{Full, Hybrid, Paged};
        // 100 and 64; 100 and 64; 90 and 128; 10 and 128.
        assert_eq!(
            ways(227, F16),
            [
                (2048, F16, Full),
                (4096, Int8, Full),
                (4096, F16, Hybrid),
                (4096, F16, Paged)
            ]
        );
        // Weights alone are too much. 2,048 positions are 64 bytes or 32, 4,096 are 128 or 64.
        assert_eq!(
            ways(99, F16),
            [
                (2048, F16, Hybrid),
                (4096, Int8, Hybrid),
                (2048, F16, Paged)
            ]
        );
        // From f32 both formats are one step. 10 and 64 fit, 20 and 64 do not.
        assert_eq!(
            ways(75, F32),
            [
                (512, F32, Hybrid),
                (1024, F16, Hybrid),
                (2048, Int8, Hybrid),
                (1024, F32, Paged),
                (4096, Int8, Paged)
            ]
        );
    }

    /// Neither half alone makes it fit: 10 and 16 are more than 20, and so are 20 and 8.
    #[test]
    fn what_only_helps_together_is_found() {
        let both = (512, KvFormat::Int8, Residency::Paged);
        assert_eq!(ways(20, KvFormat::F16), [both]);
        assert_eq!(ways(17, KvFormat::F16), []);
    }
}
