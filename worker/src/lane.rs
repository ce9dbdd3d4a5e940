//! Which lane to load: the pure part. The browser part is `shell/lanes.rs`.
//!
//! Reading order: `manifest` (what the publisher signed), this file (what of it to try and
//! whether the bytes are right), `failures` (what went wrong at earlier visits), `refusal` (all
//! of it in words), `browser` (whose failures they are).

mod browser;
mod failures;
mod manifest;
mod refusal;

use protocol::{LANES, Lane, LaneArtifact};

pub use browser::browser_name;
pub use failures::{FAILURES_BYTES_MAX, FAILURES_MAX, Failures};
pub use manifest::{MANIFEST_BYTES_MAX, Manifest};
pub use refusal::{LaneRefusal, ThreadFault};

/// A lane larger than this is refused before it is fetched.
pub const LANE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A lane of the table and the build of it that the server has.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'m> {
    pub lane: &'static Lane,
    pub artifact: &'m LaneArtifact,
}

/// The lanes to try, best first: all of the table, or only the forced one.
pub fn order(forced: Option<&str>) -> Result<Vec<&'static Lane>, LaneRefusal> {
    let Some(name) = forced else {
        return Ok(LANES.iter().collect());
    };
    match LANES.iter().find(|lane| lane.name == name) {
        Some(lane) => Ok(vec![lane]),
        None => Err(LaneRefusal::UnknownLane(name.chars().take(40).collect())),
    }
}

/// The build of one lane, if the manifest has a usable one.
pub fn candidate<'m>(
    manifest: &'m Manifest,
    lane: &'static Lane,
) -> Result<Candidate<'m>, LaneRefusal> {
    let artifact = manifest.artifact(lane.id)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    // A plain file name cannot point outside the folder of the manifest.
    if !artifact.url.bytes().all(plain) || artifact.url.starts_with('.') {
        return Err(LaneRefusal::Address(lane.id));
    }
    if artifact.bytes > LANE_BYTES_MAX {
        return Err(LaneRefusal::Length {
            lane: lane.id,
            expected: LANE_BYTES_MAX,
            found: artifact.bytes,
        });
    }
    Ok(Candidate { lane, artifact })
}

/// Compares fetched bytes with what the manifest promises.
pub fn verify(candidate: &Candidate<'_>, bytes: &[u8]) -> Result<(), LaneRefusal> {
    let lane = candidate.lane.id;
    let found = bytes.len() as u64;
    if found != candidate.artifact.bytes {
        return Err(LaneRefusal::Length {
            lane,
            expected: candidate.artifact.bytes,
            found,
        });
    }
    let found = format::sha256(bytes);
    if found != candidate.artifact.sha256 {
        return Err(LaneRefusal::Hash {
            lane,
            expected: candidate.artifact.sha256,
            found,
        });
    }
    Ok(())
}
