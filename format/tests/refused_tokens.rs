//! Layouts, tokenizers and special ids that do not fit the model.

#![allow(clippy::unwrap_used)]

mod fixture;

use fixture::{architecture, model, refuse_value};
use format::FormatError::*;
use format::*;

#[test]
fn layouts_that_do_not_fit() {
    let set = |tensor: &'static str, layout| {
        move |m: &mut Manifest| {
            if let Some(entry) = m.tensors.get_mut(tensor) {
                entry.layout = layout;
            }
        }
    };
    let refused = |tensor: &str, layout| LayoutRefused {
        tensor: tensor.into(),
        layout,
    };
    for (tensor, layout) in [
        ("norm", Layout::F16),
        ("layers.0.q_bias", Layout::Q8_0R4),
        ("layers.0.q", Layout::Bytes),
        ("tokenizer", Layout::F32),
    ] {
        refuse_value(set(tensor, layout), refused(tensor, layout));
    }
    // The columns of `o` are 2 heads of 18.
    let partial = PartialBlock {
        tensor: "layers.0.o".into(),
        cols: 36,
    };
    refuse_value(set("layers.0.o", Layout::Q4_0R4), partial);
}

#[test]
fn tokenizers() {
    refuse_value(|m| m.tokenizer = None, TokenizerPresence { wanted: true });
    let change = |change: fn(&mut TokenizerRef)| {
        move |m: &mut Manifest| {
            if let Some(tokenizer) = &mut m.tokenizer {
                change(tokenizer);
            }
        }
    };
    let found = String::from("embed");
    refuse_value(
        change(|t| t.tensor = "embed".into()),
        TokenizerName { found },
    );
    for bad in [0u32, 41] {
        let field = "tokenizer.tokens";
        let error = Dimension {
            field,
            found: bad.into(),
            min: 1,
            max: 40,
        };
        let set: fn(&mut TokenizerRef) = if bad == 0 {
            |t| t.tokens = 0
        } else {
            |t| t.tokens = 41
        };
        refuse_value(change(set), error);
    }
    let remove = |m: &mut Manifest| m.tensors.retain(|name, _| name != "tokenizer");
    refuse_value(
        remove,
        MissingTensor {
            tensor: "tokenizer".into(),
        },
    );
    for bad in [Shape { rows: 2, cols: 32 }, Shape::row(0)] {
        let set = |m: &mut Manifest| {
            let entry = TensorEntry {
                shape: bad,
                layout: Layout::Bytes,
            };
            m.tensors.insert("tokenizer".into(), entry);
        };
        let expected = Shape::row(bad.cols.max(1));
        refuse_value(
            set,
            TensorShape {
                tensor: "tokenizer".into(),
                expected,
                found: bad,
            },
        );
    }
}

#[test]
fn the_payload_is_checked_against_its_hash() {
    let header = Header::layout(model()).unwrap();
    let payload = fixture::PAYLOAD;
    assert_eq!(header.check_tokenizer(payload), Ok(()));
    let mut bad = payload.to_vec();
    bad[3] ^= 1;
    assert_eq!(header.check_tokenizer(&bad), Err(TokenizerHash));
    let (expected, found) = (payload.len() as u64, payload.len() as u64 - 1);
    let error = TokenizerLength { expected, found };
    assert_eq!(header.check_tokenizer(&payload[1..]), Err(error));
    let bare = fixture::manifest(architecture(), Kind::Bare, Layout::F16);
    let header = Header::layout(bare).unwrap();
    assert_eq!(
        header.check_tokenizer(payload),
        Err(TokenizerPresence { wanted: false })
    );
}

#[test]
fn special_tokens() {
    let range = |field, id| TokenIdRange {
        field,
        id,
        tokens: 39,
    };
    refuse_value(|m| m.special.bos = Some(39), range("bos", 39));
    refuse_value(|m| m.special.eos = Some(40), range("eos", 40));
    refuse_value(|m| m.special.pad = Some(u32::MAX), range("pad", u32::MAX));
    refuse_value(|m| m.special.stop = vec![2, 39], range("stop", 39));
    refuse_value(|m| m.special.stop = vec![2, 2], StopOrder { index: 1 });
    refuse_value(|m| m.special.stop = vec![2, 7, 3], StopOrder { index: 2 });
    let collide = |field, id| TokenIdsCollide { field, id };
    refuse_value(|m| m.special.pad = Some(1), collide("bos", 1));
    refuse_value(|m| m.special.pad = Some(2), collide("eos", 2));
    refuse_value(|m| m.special.pad = Some(7), collide("stop", 7));
    refuse_value(|m| m.special.bos = None, NoBosToAdd);
    // One token that begins and ends texts is common, and allowed.
    let mut manifest = model();
    manifest.special.bos = Some(2);
    assert_eq!(manifest.check(), Ok(()));
    // Without a tokenizer every row of the embedding is a token.
    let mut bare = fixture::manifest(architecture(), Kind::Bare, Layout::F16);
    bare.special.eos = Some(39);
    assert_eq!(bare.check(), Ok(()));
    bare.special.eos = Some(40);
    assert_eq!(
        bare.check(),
        Err(TokenIdRange {
            field: "eos",
            id: 40,
            tokens: 40
        })
    );
}
