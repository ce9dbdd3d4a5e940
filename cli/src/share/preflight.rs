//! What a model's header says, before its weights are asked for: what it is, under which licence,
//! whether this program can run it, and whether the disk has room.

use std::path::Path;

use format::{Header, PIECE_BYTES};
use runtime::{KvFormat, Mode, Options, Residency, Surroundings, measure};

use super::node::Node;
use crate::failure::Failure;
use crate::model::CONTEXT_DEFAULT_MAX;

/// What the first pieces of a file hold.
pub enum Beginning {
    Whole(Box<Header>),
    /// So many pieces hold the header.
    Needs(u32),
}

pub fn header(node: &Node, pieces: u32) -> Result<Beginning, Failure> {
    let unsound = |error: format::FormatError| {
        Failure::refused(error, "The file is no sound model; ask for another one.")
    };
    let gone = || Failure::Machine("the beginning of the file cannot be read back".into());
    let bytes = node.beginning(pieces).ok_or_else(gone)?;
    let file_len = node.id().length;
    let first = bytes.first_chunk::<8>().ok_or_else(gone)?;
    let len = format::header_len(*first, file_len).map_err(unsound)?;
    match bytes.get(..len as usize) {
        Some(bytes) => {
            let header = Header::parse(bytes, file_len).map_err(unsound)?;
            Ok(Beginning::Whole(Box::new(header)))
        }
        None => Ok(Beginning::Needs(len.div_ceil(u64::from(PIECE_BYTES)) as u32)),
    }
}

/// For the person, who can still interrupt. A model that this program cannot run may be fetched
/// for another one.
pub fn facts(header: &Header) -> [String; 3] {
    let manifest = &header.manifest;
    let licence = manifest.licence.as_deref().unwrap_or("not named");
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let options = Options {
        mode: Mode::Int8V1,
        kv_format: KvFormat::F16,
        context: manifest.architecture.context.min(CONTEXT_DEFAULT_MAX),
        prefill_tile: 0,
        residency: Residency::Full,
        kept_layers: 0,
    };
    let memory = match measure(header, &options, &Surroundings::native(1), u64::MAX) {
        Ok((plan, _)) => format!(
            "Memory to run it: {} with {} positions",
            megabytes(plan.total),
            plan.context
        ),
        Err(_) => "This program cannot run it.".into(),
    };
    [
        format!("{}: {}", manifest.name, megabytes(header.file_len)),
        format!("Licence: {licence}"),
        memory,
    ]
}

/// Refuses what the disk has no room for. Where nobody can tell, writing will.
pub fn room(to: &Path, needed: u64) -> Result<(), Failure> {
    let folder = to.parent().filter(|it| !it.as_os_str().is_empty());
    match free_bytes(folder.unwrap_or(Path::new("."))) {
        Some(free) if free < needed => {
            let what = format!("{needed} bytes are missing, and the disk has room for {free}");
            let remedy = "Make room, or choose another place with --output.";
            Err(Failure::refused(what, remedy))
        }
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::room;

    #[test]
    fn a_disk_that_is_too_small_is_known_before_the_rest() {
        let folder = std::env::temp_dir();
        assert!(room(&folder.join("a.slm"), 0).is_ok());
        let refused = room(&folder.join("a.slm"), u64::MAX)
            .unwrap_err()
            .to_string();
        assert!(refused.contains(&u64::MAX.to_string()), "{refused}");
    }
}
