//! How a model whose identity is known arrives: pieces in any order, each verified before it is
//! written, and a record that lets a later start go on where this one ended.
//!
//! The shell opens `<root>.part` and `<root>.have` (new or left over), then: `next_wanted`, fetch,
//! `feed`, until `is_complete`; `finish`; rename. Time comes in as milliseconds of any clock.
//!
//! Order on the medium: pieces, flush, record, flush. So a recorded piece was flushed before, and
//! what a crash can cost is what came after the newest record. Because media have been known to
//! lie about flushes, the pieces of the newest record are hashed again at the next start.

use format::{Digest, ModelId, PieceIndex, PieceLayer, VerifiedPiece, piece_hash};

use crate::journal::{Journal, Remembered, doubtful};
use crate::{Bitfield, Disk, Progress, StoreError};

/// A record is written after this much new data, or after [`CHECKPOINT_MS`]: one flush costs about
/// 35 ms in Chromium at this size, 5 ms for every single MiB.
pub const CHECKPOINT_BYTES: u64 = 16 * 1024 * 1024;
pub const CHECKPOINT_MS: u64 = 2000;

pub struct Import<D> {
    layer: PieceLayer,
    part: D,
    journal: Journal<D>,
    /// Verified and written.
    have: Bitfield,
    /// Those of `have` that the newest record names.
    recorded: Bitfield,
    /// Asked for and not yet answered.
    asked: Bitfield,
    unrecorded_bytes: u64,
    recorded_at_ms: Option<u64>,
    resumed: Resumed,
    stopped: Option<StoreError>,
}

/// What a start found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumed {
    pub found: Found,
    /// Pieces whose bytes were hashed again, and how many of them were wrong.
    pub rehashed: u32,
    pub dropped: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    Record,
    /// A part file whose record is lost: `recheck` can save what is in it.
    PartOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    Stored,
    /// The piece was here before; nothing was done.
    AlreadyHere,
}

/// Neighbouring pieces, for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceRun {
    pub first: PieceIndex,
    pub count: u32,
    /// First byte within the file.
    pub at: u64,
    /// In bytes.
    pub len: u64,
}

impl<D: Disk> Import<D> {
    /// Takes over the two files of a model, new or left over. Room for the whole model is reserved
    /// here, so [`StoreError::Quota`] comes before the first byte where the system can tell.
    pub fn start(layer: PieceLayer, mut part: D, have: D) -> Result<Import<D>, StoreError> {
        let id = layer.id;
        let (journal, remembered) = Journal::open(id, have)?;
        let len = part.len()?;
        if len != id.length {
            part.set_len(id.length)?;
        }
        let found = match remembered.newest {
            Some(_) => Found::Record,
            None if len == 0 => Found::Nothing,
            None => Found::PartOnly,
        };
        // A length that nobody of ours set: every recorded piece is in doubt.
        let older = remembered.older.filter(|_| len == id.length);
        let remembered = Remembered {
            older,
            ..remembered
        };
        let suspects = doubtful(&remembered);
        let none = Bitfield::empty(id.pieces());
        let have = remembered.newest.unwrap_or(none.clone());
        let mut import = Import {
            layer,
            part,
            journal,
            recorded: have.clone(),
            have,
            asked: none,
            unrecorded_bytes: 0,
            recorded_at_ms: None,
            resumed: Resumed {
                found,
                rehashed: suspects.len() as u32,
                dropped: 0,
            },
            stopped: None,
        };
        import.drop_wrong(&suspects)?;
        Ok(import)
    }

    pub fn id(&self) -> ModelId {
        self.layer.id
    }

    pub fn layer(&self) -> &PieceLayer {
        &self.layer
    }

    pub fn have(&self) -> &Bitfield {
        &self.have
    }

    pub fn resumed(&self) -> Resumed {
        self.resumed
    }

    pub fn progress(&self) -> Progress {
        Progress::of(self.layer.id, &self.have)
    }

    pub fn is_complete(&self) -> bool {
        self.have.is_full()
    }

    /// The next neighbouring pieces that are neither here nor asked for, at most `max_bytes` but
    /// at least one piece; they count as asked for. `None` if there are none, or after a failure.
    pub fn next_wanted(&mut self, max_bytes: u64) -> Option<PieceRun> {
        if self.stopped.is_some() {
            return None;
        }
        let id = self.layer.id;
        let open = |piece: &PieceIndex| !self.have.contains(*piece) && !self.asked.contains(*piece);
        let first = (0..id.pieces()).map(PieceIndex).find(|piece| open(piece))?;
        let (at, mut len) = range(id, first);
        let mut count = 1;
        loop {
            let next = PieceIndex(first.0 + count);
            let more = range(id, next).1;
            if next.0 >= id.pieces() || !open(&next) || len + more > max_bytes {
                break;
            }
            len += more;
            count += 1;
        }
        let run = PieceRun {
            first,
            count,
            at,
            len,
        };
        run.pieces().for_each(|piece| self.asked.insert(piece));
        Some(run)
    }

    /// Gives up on a request: those of its pieces that are not here are wanted again.
    pub fn release(&mut self, run: PieceRun) {
        run.pieces().for_each(|piece| self.asked.remove(piece));
    }

    /// Takes one piece: verifies it, writes it, and writes a record when one is due.
    ///
    /// [`StoreError::DigestMismatch`], [`StoreError::PieceLength`] and
    /// [`StoreError::NoSuchPiece`] leave everything as it was, and the piece is wanted again. Any
    /// other error is the disk's and ends the import; what was verified stays for a later start.
    pub fn feed(
        &mut self,
        now_ms: u64,
        piece: PieceIndex,
        bytes: &[u8],
    ) -> Result<Fed, StoreError> {
        self.running()?;
        self.asked.remove(piece);
        if self.have.contains(piece) {
            return Ok(Fed::AlreadyHere);
        }
        verify(&self.layer, piece, bytes)?;
        self.write(now_ms, piece, bytes)
    }

    /// The same for a verified piece, which is not hashed again; another model's is refused.
    pub fn feed_whole(&mut self, now_ms: u64, whole: &VerifiedPiece) -> Result<Fed, StoreError> {
        self.running()?;
        let (piece, pieces) = (whole.piece(), self.layer.id.pieces());
        if whole.id() != self.layer.id {
            return Err(StoreError::NoSuchPiece { piece, pieces });
        }
        self.asked.remove(piece);
        if self.have.contains(piece) {
            return Ok(Fed::AlreadyHere);
        }
        self.write(now_ms, piece, whole.bytes())
    }

    fn write(&mut self, now_ms: u64, piece: PieceIndex, bytes: &[u8]) -> Result<Fed, StoreError> {
        if let Err(error) = self.part.write_at(range(self.layer.id, piece).0, bytes) {
            return Err(self.stop(now_ms, error));
        }
        self.keep(now_ms, piece)?;
        Ok(Fed::Stored)
    }

    /// Looks at the stored bytes of a piece that no record names; keeps the piece if it is right.
    /// One piece a call, so that the shell can breathe in between.
    pub fn recheck(&mut self, now_ms: u64, piece: PieceIndex) -> Result<bool, StoreError> {
        self.running()?;
        if self.have.contains(piece) {
            return Ok(true);
        }
        let right = self.stored_piece_is_right(piece)?;
        if right {
            self.asked.remove(piece);
            self.keep(now_ms, piece)?;
        }
        Ok(right)
    }

    /// Hashes all pieces again that a record named, and drops those that are wrong: for files that
    /// others could write to since, and that are used by whoever does not hash them again.
    pub fn recheck_recorded(&mut self) -> Result<(), StoreError> {
        let pieces = (0..self.layer.id.pieces()).map(PieceIndex);
        let here: Vec<_> = pieces.filter(|piece| self.have.contains(*piece)).collect();
        self.resumed.rehashed = here.len() as u32;
        self.drop_wrong(&here)
    }

    /// The bytes of a piece that is here, for somebody else who wants it.
    pub fn read(&self, piece: PieceIndex) -> Result<Vec<u8>, StoreError> {
        let (id, pieces) = (self.layer.id, self.layer.id.pieces());
        if !self.have.contains(piece) {
            return Err(StoreError::NoSuchPiece { piece, pieces });
        }
        let (at, len) = range(id, piece);
        let mut bytes = vec![0; len as usize];
        self.part.read_at(at, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes a record if one is due by time. For shells that wait for bytes that do not come.
    pub fn tick(&mut self, now_ms: u64) -> Result<(), StoreError> {
        self.running()?;
        self.record_if_due(now_ms)
    }

    /// Ends the session, not the import: records what is here and closes both files.
    pub fn suspend(mut self, now_ms: u64) -> Result<Progress, StoreError> {
        if self.stopped.is_none() {
            self.record(now_ms)?;
        }
        self.part.close()?;
        self.journal.close()?;
        Ok(Progress::of(self.layer.id, &self.recorded))
    }

    /// Ends a complete import: flush, record, close. Afterwards the shell renames `.part` to
    /// `.slm`, then removes `.have`. [`StoreError::Incomplete`] if pieces are missing; what is
    /// here is recorded then.
    pub fn finish(mut self, now_ms: u64) -> Result<PieceLayer, StoreError> {
        self.running()?;
        self.record(now_ms)?;
        if !self.have.is_full() {
            let Progress {
                bytes, bytes_total, ..
            } = self.progress();
            return Err(StoreError::Incomplete {
                want: bytes_total,
                got: bytes,
            });
        }
        self.part.close()?;
        self.journal.close()?;
        Ok(self.layer)
    }

    fn running(&self) -> Result<(), StoreError> {
        self.stopped.clone().map_or(Ok(()), Err)
    }

    fn keep(&mut self, now_ms: u64, piece: PieceIndex) -> Result<(), StoreError> {
        self.have.insert(piece);
        self.unrecorded_bytes += range(self.layer.id, piece).1;
        self.record_if_due(now_ms)
    }

    fn record_if_due(&mut self, now_ms: u64) -> Result<(), StoreError> {
        let since = *self.recorded_at_ms.get_or_insert(now_ms);
        let late = now_ms.saturating_sub(since) >= CHECKPOINT_MS;
        if late || self.unrecorded_bytes >= CHECKPOINT_BYTES {
            self.record(now_ms)?;
        }
        Ok(())
    }

    fn record(&mut self, now_ms: u64) -> Result<(), StoreError> {
        self.recorded_at_ms = Some(now_ms);
        if self.unrecorded_bytes == 0 {
            return Ok(());
        }
        if let Err(error) = self.part.flush() {
            // Systems forget what a failed flush did not write, and a second flush would say
            // nothing about it: only recorded pieces are still certain.
            self.have = self.recorded.clone();
            self.stopped = Some(error.clone());
            return Err(error);
        }
        if let Err(error) = self.journal.record(&self.have) {
            self.stopped = Some(error.clone());
            return Err(error);
        }
        self.recorded = self.have.clone();
        self.unrecorded_bytes = 0;
        Ok(())
    }

    /// Ends the import because a piece could not be written; tries to save what came before it.
    fn stop(&mut self, now_ms: u64, error: StoreError) -> StoreError {
        if self.record(now_ms).is_err() {
            // The first error is the one to report, and the newest record still stands.
        }
        self.stopped = Some(error.clone());
        error
    }

    fn drop_wrong(&mut self, suspects: &[PieceIndex]) -> Result<(), StoreError> {
        for &piece in suspects {
            if !self.stored_piece_is_right(piece)? {
                self.have.remove(piece);
                self.resumed.dropped += 1;
            }
        }
        if self.resumed.dropped > 0 {
            // Now, or the wrong record would vouch for these pieces when they come again.
            self.journal.record(&self.have)?;
            self.recorded = self.have.clone();
        }
        Ok(())
    }

    fn stored_piece_is_right(&self, piece: PieceIndex) -> Result<bool, StoreError> {
        let (at, len) = range(self.layer.id, piece);
        let mut bytes = vec![0; len as usize];
        match self.part.read_at(at, &mut bytes) {
            Ok(()) => Ok(verify(&self.layer, piece, &bytes).is_ok()),
            Err(StoreError::ShortRead { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl PieceRun {
    pub fn pieces(&self) -> impl Iterator<Item = PieceIndex> + use<> {
        (self.first.0..self.first.0.saturating_add(self.count)).map(PieceIndex)
    }
}

fn range(id: ModelId, piece: PieceIndex) -> (u64, u64) {
    let (at, len) = id.piece_range(piece);
    (at, u64::from(len))
}

/// Checks one piece's bytes against the layer.
pub(crate) fn verify(
    layer: &PieceLayer,
    piece: PieceIndex,
    bytes: &[u8],
) -> Result<(), StoreError> {
    let id = layer.id;
    let want: Digest = match layer.hashes().get(piece.0 as usize) {
        Some(hash) => *hash,
        None => {
            let pieces = id.pieces();
            return Err(StoreError::NoSuchPiece { piece, pieces });
        }
    };
    let (_, len) = range(id, piece);
    let got = bytes.len() as u64;
    if got != len {
        let want = len;
        return Err(StoreError::PieceLength { piece, want, got });
    }
    let got = piece_hash(bytes, id.length);
    if got != want {
        return Err(StoreError::DigestMismatch { piece, want, got });
    }
    Ok(())
}
