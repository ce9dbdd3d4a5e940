//! Errors against references in f64, and the golden activations.
//!
//! The references are written with crate `libm` in f64, whose error is far below an f32 ULP; the
//! forms are chosen so that nothing cancels. `TINYRUSTLM_FULL_WALK=1` walks all 2^32 inputs.

use std::vec::Vec;
use std::{env, fs, println};

use super::*;

/// The distance of `got` from the exact `want`, in units of the last place of f32 at `want`.
fn ulps(got: f32, want: f64) -> f64 {
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let rounded = want as f32;
    if rounded.is_infinite() || got.is_infinite() {
        // Halfway to 2^128 or beyond rounds to infinity; one step below it counts as one ULP.
        return if rounded == got {
            0.0
        } else {
            1.0 + f64::from(u8::from(got.abs() < f32::MAX)) * 9.0
        };
    }
    let exponent = ((rounded.abs().to_bits() >> 23) as i32).max(1) - 127 - 23;
    (f64::from(got) - want).abs() / libm::exp2(f64::from(exponent))
}

fn check(name: &str, function: fn(f32) -> f32, reference: fn(f64) -> f64) {
    let step = if env::var("TINYRUSTLM_FULL_WALK").is_ok() {
        1
    } else {
        1009
    };
    let (mut worst, mut at) = (0.0, 0.0f32);
    let corners = [
        f32::INFINITY,
        f32::NAN,
        f32::MAX,
        0.0,
        f32::from_bits(1),
        1.0,
        128.0,
    ];
    let corners = corners.into_iter().flat_map(|x| [x, -x]);
    let walk = (0..=u32::MAX).step_by(step).map(f32::from_bits);
    for x in corners.chain(walk) {
        let error = ulps(function(x), reference(f64::from(x)));
        if error > worst {
            (worst, at) = (error, x);
        }
    }
    println!("{name}: {worst:.3} ULP at {at:e} ({:#010x})", at.to_bits());
    assert!(worst <= 2.0, "{name}: {worst} ULP at {at:e}");
}

fn logistic(x: f64) -> f64 {
    // e^x / (1 + e^x) is accurate for large negative x, where 1 / (1 + e^-x) may overflow.
    if x < 0.0 {
        libm::exp(x) / (1.0 + libm::exp(x))
    } else {
        1.0 / (1.0 + libm::exp(-x))
    }
}

fn times_logistic(x: f64, w: f64) -> f64 {
    if w == f64::NEG_INFINITY || w < -700.0 {
        x * 0.0
    } else {
        x * logistic(w)
    }
}

#[test]
fn exp() {
    check("exp_v1", exp_v1, libm::exp);
}

#[test]
fn sigmoid() {
    check("sigmoid_v1", sigmoid_v1, logistic);
}

#[test]
fn tanh() {
    check("tanh_v1", tanh_v1, libm::tanh);
}

#[test]
fn silu() {
    // At -infinity the limit is -0; the definition would give NaN.
    check("silu_v1", silu_v1, |x| {
        if x == f64::NEG_INFINITY {
            -0.0
        } else {
            times_logistic(x, x)
        }
    });
}

#[test]
fn gelu_tanh() {
    check("gelu_tanh_v1", gelu_tanh_v1, |x| {
        let w = 1.595_769_121_605_730_7 * (x + 0.044715 * x * x * x);
        if x == f64::NEG_INFINITY {
            -0.0
        } else {
            times_logistic(x, w)
        }
    });
}

#[test]
fn softplus() {
    check("softplus_v1", softplus_v1, |x| {
        if x > 0.0 {
            x + libm::log1p(libm::exp(-x))
        } else {
            libm::log1p(libm::exp(x))
        }
    });
}

#[test]
fn square_root_is_the_machine_s() {
    for bits in (0..=0x7f80_0000u32).step_by(977) {
        let x = f32::from_bits(bits);
        assert_eq!(sqrt(x).to_bits(), x.sqrt().to_bits(), "{x:e}");
    }
}

/// `golden/ops/activations.json`: float64 NumPy rounded to f32; its README gives the tolerance of
/// 2.3e-7 relative to `max(1, |expected|)` that PyTorch's own f32 keeps.
#[test]
fn golden_activations() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../shared/golden/ops/activations.json"
    );
    let text = fs::read_to_string(path).expect("golden activations");
    let golden: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let column = |value: &serde_json::Value| -> Vec<f32> {
        let numbers = value.as_array().expect("array").iter();
        numbers
            .map(|x| x.as_f64().expect("number") as f32)
            .collect()
    };
    let x = column(&golden["x"]);
    let compare = |name: &str, got: &dyn Fn(usize) -> f32, want: &[f32]| {
        for (i, &want) in want.iter().enumerate() {
            let bound = 2.3e-7 * want.abs().max(1.0);
            assert!(
                (got(i) - want).abs() <= bound,
                "{name} {i}: {} for {want}",
                got(i)
            );
        }
    };
    type Unary = (&'static str, fn(f32) -> f32);
    let unary: [Unary; 7] = [
        ("silu", silu_v1),
        ("sigmoid", sigmoid_v1),
        ("gelu_tanh", gelu_tanh_v1),
        ("softplus", softplus_v1),
        ("tanh", tanh_v1),
        ("softcap_30", |x| 30.0 * tanh_v1(x / 30.0)),
        ("softcap_50", |x| 50.0 * tanh_v1(x / 50.0)),
    ];
    for (name, function) in unary {
        let want = column(&golden[name]);
        assert_eq!(want.len(), x.len(), "{name}");
        compare(name, &|i| function(x[i]), &want);
    }
    let (gate, up) = (column(&golden["glu"]["gate"]), column(&golden["glu"]["up"]));
    compare(
        "swiglu",
        &|i| silu_v1(gate[i]) * up[i],
        &column(&golden["glu"]["swiglu"]),
    );
    compare(
        "geglu",
        &|i| gelu_tanh_v1(gate[i]) * up[i],
        &column(&golden["glu"]["geglu_tanh"]),
    );
}
