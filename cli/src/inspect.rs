//! What a `.slm` file says of itself, and whether its bytes agree.

mod check;

use format::{Header, Kind, PieceLayer};
use serde_json::{Value, json};

use crate::args::Inspect;
use crate::failure::Failure;
use crate::model::{hash_file, open_prompter, read_header};
use check::{Witness, check_weights};

/// What was checked and found good; what is not good is refused.
struct Checked {
    has_tokenizer: bool,
    /// Who knows the bytes, if anybody does.
    witness: Option<Witness>,
}

pub fn inspect(args: &Inspect) -> Result<(), Failure> {
    let header = read_header(&args.model)?;
    let has_tokenizer = open_prompter(&args.model, &header)?.is_some();
    check_weights(&args.model, &header)?;
    let layer = hash_file(&args.model)?;
    let witness = Witness::find(&args.model, args.root)?;
    if let Some(witness) = &witness {
        witness.compare(&layer)?;
    }
    let checked = Checked {
        has_tokenizer,
        witness,
    };
    if args.json {
        println!("{}", report(&header, &layer, &checked, args.tensors));
        return Ok(());
    }
    describe(&header, &layer, &checked);
    if args.tensors {
        list(&header);
    }
    Ok(())
}

fn report(header: &Header, layer: &PieceLayer, checked: &Checked, with_tensors: bool) -> Value {
    let manifest = &header.manifest;
    let mut report = json!({
        "name": manifest.name,
        "kind": manifest.kind,
        "licence": manifest.licence,
        "source": manifest.source,
        "length": header.file_len,
        "root": layer.id.root,
        "architecture": manifest.architecture,
        "tokens": manifest.tokenizer.as_ref().map(|tokenizer| tokenizer.tokens),
        "special": manifest.special,
        "generation": manifest.generation,
        "chat_template": manifest.chat_template.is_some(),
        "checked": {
            "tokenizer": checked.has_tokenizer,
            "root_by": checked.witness.as_ref().map(Witness::name),
        },
    });
    if with_tensors {
        let tensors = header.tensors.iter().map(|tensor| {
            json!({
                "name": tensor.name,
                "shape": tensor.shape,
                "layout": tensor.layout,
                "start": tensor.range.start,
                "end": tensor.range.end,
            })
        });
        report["tensors"] = tensors.collect();
    }
    report
}

fn describe(header: &Header, layer: &PieceLayer, checked: &Checked) {
    let manifest = &header.manifest;
    let architecture = &manifest.architecture;
    let kind = match manifest.kind {
        Kind::Model => "model",
        Kind::Bare => "bare model without a tokenizer",
        Kind::Adapter => "adapter",
    };
    let state = match checked.witness {
        Some(_) => "intact",
        None => "well-formed",
    };
    println!("{} ({kind}, {state})", manifest.name);
    println!(
        "licence    {}",
        manifest.licence.as_deref().unwrap_or("not stated")
    );
    println!("source     {}", manifest.source.description);
    println!("           sha256 {}", manifest.source.sha256);
    println!("length     {} bytes", header.file_len);
    println!("root       {}", layer.id.root);
    println!(
        "shape      {} layers, hidden {}, {} heads, {} KV heads of {}, FFN {}, vocabulary {}",
        architecture.layers.len(),
        architecture.hidden,
        architecture.heads,
        architecture.kv_heads,
        architecture.head_dim,
        architecture.ffn,
        architecture.vocab,
    );
    println!("context    {} positions", architecture.context);
    println!("weights    {} parameters", parameters(header));
    let chat = if manifest.chat_template.is_some() {
        "has a chat template"
    } else {
        "no template"
    };
    println!("chat       {chat}");
    let tokenizer = match checked.has_tokenizer {
        true => "the tokenizer's hash, ",
        false => "",
    };
    println!("checked    header, {tokenizer}that every float and scale is a number");
    match &checked.witness {
        Some(witness) => println!("           every byte, by {}", witness.name()),
        None => println!(
            "           not whether a bit of the weights flipped: nothing here knows the root; name \
             it with --root"
        ),
    }
}

fn list(header: &Header) {
    for tensor in &header.tensors {
        println!(
            "{:<24} {:>7} x {:<6} {:<9} {:>12}..{}",
            tensor.name,
            tensor.shape.rows,
            tensor.shape.cols,
            tensor.layout.name(),
            tensor.range.start,
            tensor.range.end,
        );
    }
}

fn parameters(header: &Header) -> u64 {
    let tensors = header.manifest.architecture.tensors();
    tensors
        .iter()
        .map(|tensor| u64::from(tensor.shape.rows) * u64::from(tensor.shape.cols))
        .sum()
}
