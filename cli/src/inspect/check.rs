//! What of a file can be checked, and against what.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use format::{Header, PIECE_BYTES, PieceLayer, Root};

use crate::failure::Failure;
use crate::torrent;

/// More than the torrent or the hashes of any model take.
const BESIDE_BYTES_MAX: u64 = 64 * 1024 * 1024;
const DAMAGED: &str = "The file is damaged, or another one; fetch or convert it again.";

/// Who says which bytes the file must have.
pub enum Witness {
    /// The call.
    Call(Root),
    /// A torrent beside the file.
    Torrent(PathBuf, Root),
    /// The hashes of all pieces, in a file beside it.
    Pieces(PathBuf, Vec<u8>),
}

impl Witness {
    /// The call before the torrent before the hashes; `None` if nobody says anything.
    pub fn find(model: &Path, asked: Option<Root>) -> Result<Option<Witness>, Failure> {
        if let Some(root) = asked {
            return Ok(Some(Witness::Call(root)));
        }
        let path = torrent::beside(model);
        if let Some(bytes) = read_beside(&path)? {
            let described = torrent::described(&bytes);
            // One of version 1 alone has no root.
            if let Some(id) = described {
                return Ok(Some(Witness::Torrent(path, id.root)));
            }
        }
        let path = model.with_extension("slm.pieces");
        let bytes = read_beside(&path)?;
        Ok(bytes.map(|bytes| Witness::Pieces(path, bytes)))
    }

    pub fn name(&self) -> String {
        match self {
            Witness::Call(_) => "--root".into(),
            Witness::Torrent(path, _) | Witness::Pieces(path, _) => path.display().to_string(),
        }
    }

    /// Refuses other bytes than those that the witness knows.
    pub fn compare(&self, layer: &PieceLayer) -> Result<(), Failure> {
        let found = layer.id.root;
        let what = match self {
            Witness::Call(root) | Witness::Torrent(_, root) if *root == found => return Ok(()),
            Witness::Call(root) | Witness::Torrent(_, root) => {
                format!("the root is {found}, and {} says {root}", self.name())
            }
            Witness::Pieces(_, hashes) => {
                let found = layer.to_bytes();
                if *hashes == found {
                    return Ok(());
                }
                let (wanted, found) = (hashes.chunks(32), found.chunks(32));
                let first = wanted
                    .zip(found)
                    .position(|(wanted, found)| wanted != found);
                match first {
                    Some(piece) => format!(
                        "the bytes from {} on are not those of {}",
                        piece as u64 * u64::from(PIECE_BYTES),
                        self.name()
                    ),
                    None => format!("{} is of a file of another length", self.name()),
                }
            }
        };
        Err(Failure::refused(what, DAMAGED))
    }
}

fn read_beside(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let mut bytes = Vec::new();
    let read = file.take(BESIDE_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(failed)?;
    Ok(Some(bytes))
}

/// Every float and scale must be finite.
pub fn check_weights(path: &Path, header: &Header) -> Result<(), Failure> {
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
                Failure::refused(format!("tensor {}: {error}", tensor.name), DAMAGED)
            })?;
            at += len;
        }
    }
    Ok(())
}
