//! Rules of rotary scaling that both kinds of source share.
//!
//! Logarithms and powers come from `libm`, so that the same source gives the same `.slm` bytes on
//! every machine.

use std::f64::consts::PI;

use format::RopeScaling;

/// The factor on cosine and sine that yarn gives for a context factor, as transformers and
/// llama.cpp both compute it (YaRN paper, equation 22, with `mscale` in place of 1).
pub(crate) fn yarn_mscale(factor: f64, mscale: f64) -> f64 {
    match factor <= 1.0 {
        true => 1.0,
        false => 0.1 * mscale * libm::log(factor) + 1.0,
    }
}

/// Recovers the scaling from the divisors of the frequencies that GGUF stores for Llama 3
/// (`rope_freqs.weight`, one per pair). `None` if the published parameters do not give them.
pub(crate) fn llama3_from_divisors(divisors: &[f32], base: f64) -> Option<RopeScaling> {
    /// Llama 3.1 to 3.3 all have these; only the factor differs.
    const LOW: f64 = 1.0;
    const HIGH: f64 = 4.0;
    const ORIGINAL_CONTEXT: u32 = 8192;
    /// The writer computes in f32, from frequencies with a few roundings behind them.
    const TOLERANCE: f64 = 2e-5;

    if divisors.iter().all(|divisor| *divisor == 1.0) {
        return Some(RopeScaling::None);
    }
    let factor = divisors.iter().fold(1.0, |m: f32, d| m.max(*d));
    let factor = f64::from(factor);
    let dim = divisors.len() as f64 * 2.0;
    for (pair, divisor) in divisors.iter().enumerate() {
        let wavelength = 2.0 * PI * libm::pow(base, 2.0 * pair as f64 / dim);
        let turns = f64::from(ORIGINAL_CONTEXT) / wavelength;
        let smooth = ((turns - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
        let expected = 1.0 / ((1.0 - smooth) / factor + smooth);
        let error = (f64::from(*divisor) / expected - 1.0).abs();
        // Written so that NaN is refused, too.
        if !matches!(
            error.partial_cmp(&TOLERANCE),
            Some(std::cmp::Ordering::Less)
        ) {
            return None;
        }
    }
    Some(RopeScaling::Llama3 {
        factor,
        low_freq_factor: LOW,
        high_freq_factor: HIGH,
        original_context: ORIGINAL_CONTEXT,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `convert_hf_to_gguf.py` writes them, for Llama 3.2 1B (head size 64, base 500000).
    fn divisors(factor: f32) -> Vec<f32> {
        (0..32)
            .map(|pair| {
                let frequency = 1.0 / 500_000_f32.powf(pair as f32 * 2.0 / 64.0);
                let wavelength = 2.0 * std::f32::consts::PI / frequency;
                if wavelength < 8192.0 / 4.0 {
                    1.0
                } else if wavelength > 8192.0 {
                    factor
                } else {
                    let smooth = (8192.0 / wavelength - 1.0) / 3.0;
                    1.0 / ((1.0 - smooth) / factor + smooth)
                }
            })
            .collect()
    }

    #[test]
    fn published_parameters_are_recovered_and_others_are_not() {
        for factor in [8.0, 32.0] {
            let found = llama3_from_divisors(&divisors(factor), 500_000.0);
            let expected = RopeScaling::Llama3 {
                factor: factor.into(),
                low_freq_factor: 1.0,
                high_freq_factor: 4.0,
                original_context: 8192,
            };
            assert_eq!(found, Some(expected));
        }
        let mut changed = divisors(8.0);
        changed[20] *= 1.001;
        assert_eq!(llama3_from_divisors(&changed, 500_000.0), None);
        assert_eq!(llama3_from_divisors(&divisors(8.0), 10_000.0), None);
        changed[20] = f32::NAN;
        assert_eq!(llama3_from_divisors(&changed, 500_000.0), None);
        let ones = llama3_from_divisors(&[1.0; 32], 500_000.0);
        assert_eq!(ones, Some(RopeScaling::None));
    }
}
