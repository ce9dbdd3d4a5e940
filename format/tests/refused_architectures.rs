//! Dimensions, numbers and tensors that make no model, each refused by its own error.

#![allow(clippy::unwrap_used)]

mod fixture;

use fixture::{Draft, architecture, model, refuse, refuse_value};
use format::FormatError::*;
use format::*;

type SetDimension = fn(&mut Architecture, u32);
type SetNumber = fn(&mut Generation, f32);

#[test]
fn dimensions() {
    let cases: [(&str, u32, SetDimension); 7] = [
        ("vocab", VOCAB_MAX, |a, n| a.vocab = n),
        ("hidden", HIDDEN_MAX, |a, n| a.hidden = n),
        ("heads", HEADS_MAX, |a, n| a.heads = n),
        ("kv_heads", HEADS_MAX, |a, n| a.kv_heads = n),
        ("head_dim", HEAD_DIM_MAX, |a, n| a.head_dim = n),
        ("ffn", FFN_MAX, |a, n| a.ffn = n),
        ("context", CONTEXT_MAX, |a, n| a.context = n),
    ];
    for (field, max, set) in cases {
        for bad in [0, max + 1, u32::MAX] {
            let (found, max) = (u64::from(bad), u64::from(max));
            let error = Dimension {
                field,
                found,
                min: 1,
                max,
            };
            refuse_value(|m| set(&mut m.architecture, bad), error);
        }
        // The limit itself is allowed: whatever is refused then, it is not this field.
        let mut most = architecture();
        set(&mut most, max);
        let verdict = most.check();
        assert!(
            !matches!(verdict, Err(Dimension { .. })),
            "{field}: {verdict:?}"
        );
    }
    let layer = architecture().layers[0];
    for bad in [0, 513] {
        let error = Dimension {
            field: "layers",
            found: bad as u64,
            min: 1,
            max: 512,
        };
        refuse_value(|m| m.architecture.layers = vec![layer; bad], error);
    }
    let error = HeadsNotDivisible {
        heads: 2,
        kv_heads: 4,
    };
    refuse_value(|m| m.architecture.kv_heads = 4, error);
    for dim in [0, 3, 20] {
        refuse_value(
            |m| m.architecture.rope.dim = dim,
            RopeDim { dim, head_dim: 18 },
        );
    }
}

#[test]
fn numbers() {
    let number = |field, value: f64| Number {
        field,
        bits: value.to_bits(),
    };
    for bad in [0.0, -1e-5, 7.038531e-26, 1.5, f32::NAN, f32::INFINITY] {
        let mut manifest = model();
        manifest.architecture.norm.eps = bad;
        assert_eq!(
            Header::layout(manifest),
            Err(number("norm.eps", f64::from(bad)))
        );
    }
    refuse("\"eps\":0.00001", "\"eps\":0", number("norm.eps", 0.0));
    refuse(
        "\"eps\":0.00001",
        "\"eps\":1e300",
        number("norm.eps", f64::INFINITY),
    );
    refuse(
        "\"eps\":0.00001",
        "\"eps\":null",
        WrongValue {
            text: JsonText::Manifest,
            path: "architecture.norm.eps".into(),
        },
    );
    for bad in [1.0, 0.0, -10000.0] {
        refuse_value(|m| m.architecture.rope.base = bad, number("rope.base", bad));
    }
    let generation: [(&str, f32, SetNumber); 10] = [
        ("generation.temperature", 1e-21, |g, n| {
            g.temperature = Some(n)
        }),
        ("generation.min_p", 1e-21, |g, n| g.min_p = Some(n)),
        ("generation.temperature", -0.5, |g, n| {
            g.temperature = Some(n)
        }),
        ("generation.top_p", 0.0, |g, n| g.top_p = Some(n)),
        ("generation.top_p", 1.5, |g, n| g.top_p = Some(n)),
        ("generation.min_p", -0.5, |g, n| g.min_p = Some(n)),
        ("generation.min_p", 1.5, |g, n| g.min_p = Some(n)),
        ("generation.repetition_penalty", 0.0, |g, n| {
            g.repetition_penalty = Some(n)
        }),
        ("generation.repetition_penalty", -1.0, |g, n| {
            g.repetition_penalty = Some(n)
        }),
        ("generation.repetition_penalty", -0.0, |g, n| {
            g.repetition_penalty = Some(n)
        }),
    ];
    for (field, bad, set) in generation {
        refuse_value(
            |m| set(&mut m.generation, bad),
            number(field, f64::from(bad)),
        );
    }
}

fn llama3(factor: f64, low: f64, high: f64, original_context: u32) -> RopeScaling {
    RopeScaling::Llama3 {
        factor,
        low_freq_factor: low,
        high_freq_factor: high,
        original_context,
    }
}

/// `betas` are the fast and the slow one.
fn yarn(factor: f64, betas: [f64; 2], original_context: u32, attention: f64) -> RopeScaling {
    RopeScaling::Yarn {
        factor,
        beta_fast: betas[0],
        beta_slow: betas[1],
        original_context,
        attention_factor: attention,
        truncate: true,
    }
}

#[test]
fn rope_scaling_outside_its_limits() {
    let number = |field, value: f64| Number {
        field,
        bits: value.to_bits(),
    };
    let dimension = |found| Dimension {
        field: "rope.scaling.original_context",
        found,
        min: 1,
        max: u64::from(CONTEXT_MAX),
    };
    let cases = [
        (
            RopeScaling::Linear { factor: 0.5 },
            number("rope.scaling.factor", 0.5),
        ),
        (
            llama3(0.0, 1.0, 4.0, 64),
            number("rope.scaling.factor", 0.0),
        ),
        (
            llama3(8.0, 0.0, 4.0, 64),
            number("rope.scaling.low_freq_factor", 0.0),
        ),
        (
            llama3(8.0, 4.0, 4.0, 64),
            number("rope.scaling.high_freq_factor", 4.0),
        ),
        (llama3(8.0, 1.0, 4.0, 0), dimension(0)),
        (
            yarn(0.5, [32.0, 1.0], 64, 1.0),
            number("rope.scaling.factor", 0.5),
        ),
        (
            yarn(4.0, [32.0, 0.0], 64, 1.0),
            number("rope.scaling.beta_slow", 0.0),
        ),
        (
            yarn(4.0, [1.0, 2.0], 64, 1.0),
            number("rope.scaling.beta_fast", 1.0),
        ),
        (
            yarn(4.0, [32.0, 1.0], 64, 0.0),
            number("rope.scaling.attention_factor", 0.0),
        ),
        (
            yarn(4.0, [32.0, 1.0], u32::MAX, 1.0),
            dimension(u64::from(u32::MAX)),
        ),
    ];
    for (scaling, expected) in cases {
        refuse_value(|m| m.architecture.rope.scaling = scaling.clone(), expected);
    }
}

#[test]
fn rope_scaling_within_limits_is_kept() {
    for good in [
        RopeScaling::Linear { factor: 4.0 },
        llama3(8.0, 1.0, 4.0, 64),
        yarn(4.0, [32.0, 1.0], 64, 1.1386),
    ] {
        let mut manifest = model();
        manifest.architecture.rope.scaling = good;
        let draft = Draft::new(manifest.clone());
        assert_eq!(draft.parse(&draft.json).unwrap().manifest, manifest);
    }
}

#[test]
fn tensors_that_are_not_those_of_the_architecture() {
    let norm = "\"norm\":{\"shape\":{\"rows\":1,\"cols\":32}";
    let name = |tensor: &str| String::from(tensor);
    refuse(
        norm,
        &norm.replace("norm", "morn"),
        MissingTensor {
            tensor: name("norm"),
        },
    );
    let extra =
        format!("\"morn\":{{\"shape\":{{\"rows\":1,\"cols\":1}},\"layout\":\"f32\"}},{norm}");
    refuse(
        norm,
        &extra,
        UnexpectedTensor {
            tensor: name("morn"),
        },
    );
    refuse_value(
        |m| m.architecture.tied_head = true,
        UnexpectedTensor {
            tensor: name("head"),
        },
    );
    let bias = name("layers.0.o_bias");
    refuse_value(
        |m| m.architecture.o_bias = false,
        UnexpectedTensor { tensor: bias },
    );
    let tensor = name("norm");
    let (expected, found) = (Shape::row(32), Shape { rows: 2, cols: 32 });
    let error = TensorShape {
        tensor,
        expected,
        found,
    };
    refuse(norm, &norm.replace("\"rows\":1", "\"rows\":2"), error);
    let many = |m: &mut Manifest| {
        let entry = m.tensors["norm"];
        m.tensors
            .extend((0..TENSORS_MAX).map(|number| (format!("x{number}"), entry)));
    };
    refuse_value(many, TooManyTensors { max: TENSORS_MAX });
}
