//! What a `.slm` file says of itself, and whether its bytes agree.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use format::{Header, Kind, PieceLayer};
use serde_json::{Value, json};

use crate::args::Inspect;
use crate::failure::Failure;
use crate::model::{hash_file, read_header};

pub fn inspect(args: &Inspect) -> Result<(), Failure> {
    let header = read_header(&args.model)?;
    check_weights(&args.model, &header)?;
    let layer = hash_file(&args.model)?;
    if args.json {
        println!("{}", report(&header, &layer, args.tensors));
        return Ok(());
    }
    describe(&header, &layer);
    if args.tensors {
        list(&header);
    }
    Ok(())
}

fn report(header: &Header, layer: &PieceLayer, with_tensors: bool) -> Value {
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

fn describe(header: &Header, layer: &PieceLayer) {
    let manifest = &header.manifest;
    let architecture = &manifest.architecture;
    let kind = match manifest.kind {
        Kind::Model => "model",
        Kind::Bare => "bare model without a tokenizer",
        Kind::Adapter => "adapter",
    };
    println!("{} ({kind}, intact)", manifest.name);
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

/// Every float and scale must be finite.
fn check_weights(path: &Path, header: &Header) -> Result<(), Failure> {
    /// A multiple of every element and group block size, about 1 MiB.
    const WINDOW: u64 = 136 * 72 * 80 * 2;
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let mut window = Vec::new();
    for tensor in &header.tensors {
        let mut at = tensor.range.start;
        while at < tensor.range.end {
            let len = (tensor.range.end - at).min(WINDOW);
            window.resize(len as usize, 0);
            file.seek(SeekFrom::Start(at)).map_err(failed)?;
            file.read_exact(&mut window).map_err(failed)?;
            format::check_finite(tensor.layout, &window, at).map_err(|error| {
                Failure::refused(
                    format!("tensor {}: {error}", tensor.name),
                    "The file is damaged; fetch or convert it again.",
                )
            })?;
            at += len;
        }
    }
    Ok(())
}
