//! `tinyrustlm torrent`: a model as a torrent of both versions (BEP 3 and BEP 52), so that any
//! BitTorrent program can fetch it; its root there is the root here.

mod bencode;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use format::{Digest, ModelId, PIECE_BYTES, PieceLayer, Root};
use sha1::{Digest as _, Sha1};

use crate::args::Torrent;
use crate::failure::Failure;
use bencode::{Value, write};

pub fn torrent(args: &Torrent) -> Result<(), Failure> {
    let header = crate::model::read_header(&args.model)?;
    let layer = crate::model::hash_file(&args.model)?;
    let Some(name) = args.model.file_name().and_then(|name| name.to_str()) else {
        return Err(Failure::Usage("the file's name is not UTF-8".into()));
    };
    let pieces = hash_pieces(&args.model)?;
    let info = info(name, &layer, pieces);
    let licence = header.manifest.licence.as_deref().unwrap_or("not named");
    let comment = format!("{}; licence: {licence}", header.manifest.name);
    let mut root = vec![
        ("comment", text(&comment)),
        (
            "created by",
            text(concat!("TinyRustLM ", env!("CARGO_PKG_VERSION"))),
        ),
        ("info", info),
        ("piece layers", piece_layers(&layer)),
    ];
    if let Some(first) = args.tracker.first() {
        root.push(("announce", text(first)));
        let tiers = args.tracker.iter().map(|url| Value::List(vec![text(url)]));
        root.push(("announce-list", Value::List(tiers.collect())));
    }
    if !args.source.is_empty() {
        root.push((
            "url-list",
            Value::List(args.source.iter().map(|url| text(url)).collect()),
        ));
    }
    let mut bytes = Vec::new();
    write(&table(root), &mut bytes);
    let output = match &args.output {
        Some(output) => output.clone(),
        None => beside(&args.model),
    };
    crate::output::keep_input(&output, std::slice::from_ref(&args.model))?;
    std::fs::write(&output, bytes).map_err(|error| Failure::file(&output, &error))?;
    println!("{}: root {}", output.display(), layer.id.root);
    Ok(())
}

/// What is hashed to name the torrent: version 1's list of pieces and version 2's tree of files.
fn info(name: &str, layer: &PieceLayer, pieces: Vec<u8>) -> Value {
    let ModelId { root, length } = layer.id;
    let file = table(vec![
        ("length", Value::Number(length)),
        ("pieces root", Value::Bytes(root.0.0.to_vec())),
    ]);
    table(vec![
        ("file tree", table(vec![(name, table(vec![("", file)]))])),
        ("length", Value::Number(length)),
        ("meta version", Value::Number(2)),
        ("name", text(name)),
        ("piece length", Value::Number(u64::from(PIECE_BYTES))),
        ("pieces", Value::Bytes(pieces)),
    ])
}

/// A file of at most one piece has no layer: its root says it all.
fn piece_layers(layer: &PieceLayer) -> Value {
    let mut layers = BTreeMap::new();
    if layer.id.pieces() > 1 {
        layers.insert(layer.id.root.0.0.to_vec(), Value::Bytes(layer.to_bytes()));
    }
    Value::Table(layers)
}

/// SHA-1 of every piece, for version 1.
fn hash_pieces(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let mut hashes = Vec::new();
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES as usize);
        let mut part = (&mut file).take(u64::from(PIECE_BYTES));
        if part.read_to_end(&mut piece).map_err(failed)? == 0 {
            return Ok(hashes);
        }
        hashes.extend_from_slice(&Sha1::digest(&piece));
    }
}

fn text(text: &str) -> Value {
    Value::Bytes(text.as_bytes().to_vec())
}

fn table(entries: Vec<(&str, Value)>) -> Value {
    let entries = entries
        .into_iter()
        .map(|(key, value)| (key.as_bytes().to_vec(), value));
    Value::Table(entries.collect())
}

/// Where the torrent of a model lies if nobody says otherwise.
pub fn beside(model: &Path) -> PathBuf {
    model.with_extension("slm.torrent")
}

/// Which file a torrent of version 2 describes; nothing for any other torrent.
pub fn described(torrent: &[u8]) -> Option<ModelId> {
    let torrent = bencode::read(torrent)?;
    let files = torrent.get("info")?.get("file tree")?.table()?;
    let [file] = files.values().collect::<Vec<_>>()[..] else {
        return None;
    };
    let file = file.get("")?;
    let (Value::Number(length), Value::Bytes(root)) =
        (file.get("length")?, file.get("pieces root")?)
    else {
        return None;
    };
    let root = Root(Digest(root.as_slice().try_into().ok()?));
    Some(ModelId {
        root,
        length: *length,
    })
}
