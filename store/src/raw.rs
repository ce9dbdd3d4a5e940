//! A file of a server that nobody vouches for, kept as it comes: the source of a conversion.
//!
//! There is no hash to check a piece against on arrival, so what a later start may rely on is what
//! the server said then (length and validator, which it is asked again) and hashes of our own,
//! which prove that the disk still has what came. The record stands in two slots in turns, each
//! with a number and a digest, so that a torn write costs one of them only.
//!
//! Order on the medium: pieces, flush, record, flush, as in `import`.

use format::{Digest, ModelId, PIECE_BYTES, PieceIndex, Root, sha256};

use crate::{Bitfield, CHECKPOINT_BYTES, CHECKPOINT_MS, Disk, StoreError};

/// Longest address and longest validator that are kept.
const TEXT_BYTES_MAX: usize = 4096;
/// Number, length of what follows, and the digest of all of it.
const SLOT_HEAD: usize = 8 + 4 + 32;

/// What is known of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    pub url: String,
    /// Bytes.
    pub length: u64,
    /// What the server calls this state of the file; empty if it says nothing.
    pub validator: String,
}

pub struct RawFile<D> {
    about: About,
    part: D,
    record: D,
    have: Bitfield,
    /// Of the pieces that are here.
    hashes: Vec<Digest>,
    /// Number of the newest record.
    number: u64,
    unrecorded_bytes: u64,
    recorded_at_ms: u64,
    /// Nobody has said how long it will be: it grows, and no later start can go on with it.
    is_growing: bool,
}

/// A record as it is read back.
struct Kept {
    number: u64,
    about: About,
    have: Bitfield,
    hashes: Vec<Digest>,
}

/// The name under which a file of this address is kept.
pub fn raw_key(url: &str) -> Root {
    Root(sha256(url.as_bytes()))
}

impl<D: Disk> RawFile<D> {
    /// A new file. Room for all of it is reserved here.
    pub fn start(about: About, mut part: D, mut record: D) -> Result<RawFile<D>, StoreError> {
        let pieces = id(&about).pieces();
        record.set_len(0)?;
        part.set_len(about.length)?;
        record.set_len(2 * slot_len(&about) as u64)?;
        Ok(RawFile {
            part,
            record,
            have: Bitfield::empty(pieces),
            hashes: vec![Digest::default(); pieces as usize],
            number: 0,
            unrecorded_bytes: 0,
            recorded_at_ms: 0,
            is_growing: false,
            about,
        })
    }

    /// A file of unknown length. Room is taken as it grows.
    pub fn grow(url: &str, mut part: D, mut record: D) -> Result<RawFile<D>, StoreError> {
        record.set_len(0)?;
        part.set_len(0)?;
        let url = url.to_owned();
        Ok(RawFile {
            about: About {
                url,
                ..About::default()
            },
            part,
            record,
            have: Bitfield::empty(0),
            hashes: Vec::new(),
            number: 0,
            unrecorded_bytes: 0,
            recorded_at_ms: 0,
            is_growing: true,
        })
    }

    pub fn is_growing(&self) -> bool {
        self.is_growing
    }

    /// Takes the next piece of a growing file; only its last one may be short.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.part.write_at(self.about.length, bytes)?;
        self.about.length += bytes.len() as u64;
        self.hashes.push(sha256(bytes));
        Ok(())
    }

    /// A growing file has come to its end: from here on it is as any other, and whole.
    pub fn end(&mut self, now_ms: u64, validator: &str) -> Result<(), StoreError> {
        self.about.validator = validator.to_owned();
        let pieces = id(&self.about).pieces();
        self.have = Bitfield::empty(pieces);
        (0..pieces).for_each(|piece| self.have.insert(PieceIndex(piece)));
        self.is_growing = false;
        self.record.set_len(2 * slot_len(&self.about) as u64)?;
        self.keep(now_ms)
    }

    /// What an earlier start left, with every byte of it checked; `None` if that is of no use.
    pub fn resume(part: D, record: D) -> Result<Option<RawFile<D>>, StoreError> {
        let Some(kept) = newest(&record)? else {
            return Ok(None);
        };
        // Without a validator nobody can say whether the server still has the same file.
        let is_whole = kept.have.is_full();
        if part.len()? != kept.about.length || (kept.about.validator.is_empty() && !is_whole) {
            return Ok(None);
        }
        let mut raw = RawFile {
            part,
            record,
            have: kept.have,
            hashes: kept.hashes,
            number: kept.number,
            unrecorded_bytes: 0,
            recorded_at_ms: 0,
            is_growing: false,
            about: kept.about,
        };
        let pieces: Vec<PieceIndex> = raw.have.iter().collect();
        for piece in pieces {
            let (at, len) = id(&raw.about).piece_range(piece);
            let mut bytes = vec![0; len as usize];
            let is_right = match raw.part.read_at(at, &mut bytes) {
                Ok(()) => raw.hashes[piece.0 as usize] == sha256(&bytes),
                Err(StoreError::ShortRead { .. }) => false,
                Err(error) => return Err(error),
            };
            if !is_right {
                raw.have.remove(piece);
            }
        }
        Ok(Some(raw))
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn have(&self) -> &Bitfield {
        &self.have
    }

    /// Bytes that are here.
    pub fn bytes(&self) -> u64 {
        if self.is_growing {
            return self.about.length;
        }
        let id = id(&self.about);
        let pieces = self.have.iter();
        pieces.map(|piece| u64::from(id.piece_range(piece).1)).sum()
    }

    /// Takes one whole piece.
    pub fn put(&mut self, now_ms: u64, piece: PieceIndex, bytes: &[u8]) -> Result<(), StoreError> {
        let (at, len) = id(&self.about).piece_range(piece);
        let (want, got) = (u64::from(len), bytes.len() as u64);
        if want != got || got == 0 {
            return Err(StoreError::PieceLength { piece, want, got });
        }
        self.part.write_at(at, bytes)?;
        self.hashes[piece.0 as usize] = sha256(bytes);
        self.have.insert(piece);
        self.unrecorded_bytes += got;
        let is_late = now_ms.saturating_sub(self.recorded_at_ms) >= CHECKPOINT_MS;
        if is_late || self.unrecorded_bytes >= CHECKPOINT_BYTES {
            self.keep(now_ms)?;
        }
        Ok(())
    }

    /// Whether all of these bytes are here.
    pub fn covers(&self, at: u64, len: u32) -> bool {
        pieces(at, len).all(|piece| self.holds(piece))
    }

    pub fn holds(&self, piece: PieceIndex) -> bool {
        match self.is_growing {
            true => (piece.0 as usize) < self.hashes.len(),
            false => self.have.contains(piece),
        }
    }

    /// Reads bytes that are here.
    pub fn read(&self, at: u64, len: u32) -> Result<Vec<u8>, StoreError> {
        let mut bytes = vec![0; len as usize];
        self.part.read_at(at, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes down what is here, for a later start.
    pub fn keep(&mut self, now_ms: u64) -> Result<(), StoreError> {
        self.recorded_at_ms = now_ms;
        if self.is_growing || (self.unrecorded_bytes == 0 && self.number > 0) {
            return Ok(());
        }
        self.part.flush()?;
        self.number += 1;
        let slot = self.slot();
        let at = (self.number % 2) * slot_len(&self.about) as u64;
        self.record.write_at(at, &slot)?;
        self.record.flush()?;
        self.unrecorded_bytes = 0;
        Ok(())
    }

    pub fn close(&mut self) -> Result<(), StoreError> {
        self.part.close()?;
        self.record.close()
    }

    /// Both files can still be reached.
    pub fn is_well(&self) -> bool {
        self.part.len().is_ok() && self.record.len().is_ok()
    }

    /// Makes what is here worthless to a later start: the file has changed.
    pub fn forget(&mut self) -> Result<(), StoreError> {
        self.record.set_len(0)?;
        self.record.flush()
    }

    fn slot(&self) -> Vec<u8> {
        let text = |text: &str| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
        let hashes: Vec<u8> = self.hashes.iter().flat_map(|hash| hash.0).collect();
        let body = [
            self.about.length.to_le_bytes().to_vec(),
            text(&self.about.url),
            text(&self.about.validator),
            self.have.as_bytes().to_vec(),
            hashes,
        ]
        .concat();
        let head = [
            &self.number.to_le_bytes()[..],
            &(body.len() as u32).to_le_bytes(),
        ]
        .concat();
        let digest = sha256(&[head.as_slice(), &body].concat());
        [head.as_slice(), &digest.0, &body].concat()
    }
}

/// What a record says of its file, and how many bytes of it are here.
pub fn read_got<D: Disk>(record: &D) -> Result<Option<(About, u64)>, StoreError> {
    Ok(newest(record)?.map(|kept| {
        let id = id(&kept.about);
        let bytes = kept
            .have
            .iter()
            .map(|piece| u64::from(id.piece_range(piece).1));
        let bytes = bytes.sum();
        (kept.about, bytes)
    }))
}

/// The pieces that hold these bytes.
pub fn pieces(at: u64, len: u32) -> impl Iterator<Item = PieceIndex> {
    let piece = u64::from(PIECE_BYTES);
    let end = (at + u64::from(len)).div_ceil(piece);
    (at / piece..end).map(|index| PieceIndex(index as u32))
}

/// Pieces are those of a model of this length; its root plays no part.
fn id(about: &About) -> ModelId {
    ModelId {
        root: Root(Digest::default()),
        length: about.length,
    }
}

fn slot_len(about: &About) -> usize {
    let pieces = id(about).pieces() as usize;
    let texts = 8 + about.url.len() + about.validator.len();
    (SLOT_HEAD + 8 + texts + pieces.div_ceil(8) + 32 * pieces).next_multiple_of(4096)
}

fn newest<D: Disk>(record: &D) -> Result<Option<Kept>, StoreError> {
    let len = record.len()? / 2;
    // No more than a record of a model of 4 GiB has.
    if len == 0 || len > 1024 * 1024 {
        return Ok(None);
    }
    let mut kept: Option<Kept> = None;
    for at in [0, len] {
        let mut bytes = vec![0; len as usize];
        record.read_at(at, &mut bytes)?;
        if let Some(found) = parse(&bytes)
            && kept.as_ref().is_none_or(|kept| kept.number < found.number)
        {
            kept = Some(found);
        }
    }
    Ok(kept)
}

fn parse(slot: &[u8]) -> Option<Kept> {
    let (head, rest) = slot.split_at_checked(12)?;
    let (digest, rest) = rest.split_at_checked(32)?;
    let number = u64::from_le_bytes(head[..8].try_into().ok()?);
    let len = u32::from_le_bytes(head[8..].try_into().ok()?) as usize;
    let body = rest.get(..len)?;
    if sha256(&[head, body].concat()).0 != digest {
        return None;
    }
    let (length, body) = body.split_at_checked(8)?;
    let length = u64::from_le_bytes(length.try_into().ok()?);
    let (url, body) = text(body)?;
    let (validator, body) = text(body)?;
    let about = About {
        url,
        length,
        validator,
    };
    let count = id(&about).pieces();
    let (have, hashes) = body.split_at_checked((count as usize).div_ceil(8))?;
    let (hashes, rest) = hashes.as_chunks::<32>();
    let is_sound = rest.is_empty() && hashes.len() == count as usize;
    is_sound.then_some(())?;
    Some(Kept {
        number,
        have: Bitfield::from_bytes(count, have)?,
        hashes: hashes.iter().map(|hash| Digest(*hash)).collect(),
        about,
    })
}

fn text(body: &[u8]) -> Option<(String, &[u8])> {
    let (len, body) = body.split_at_checked(4)?;
    let len = u32::from_le_bytes(len.try_into().ok()?) as usize;
    let (text, body) = body
        .split_at_checked(len)
        .filter(|_| len <= TEXT_BYTES_MAX)?;
    Some((String::from_utf8(text.to_vec()).ok()?, body))
}
