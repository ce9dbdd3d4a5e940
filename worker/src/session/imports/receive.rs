//! Receiving and verifying pieces.

use format::{ModelId, PIECE_BYTES, PieceIndex, VerifiedPiece};
use protocol::ImportPhase;
use store::{Disk, FLIGHTS_MAX, Import, PieceRun, Progress, REQUEST_BYTES_MAX, StoreError};

use super::STRIKES_MAX;
use super::check::wrong_piece;
use super::close::{Closing, Outcome};
use super::job::{Bench, End, Job, Origin, Sound, Stage};
use crate::engine::Engine;
use crate::source::{Source, SourceFault};

/// Pieces that are wanted at a time: as many as all requests under way can bring.
pub const WANTED_MAX: usize = FLIGHTS_MAX * (REQUEST_BYTES_MAX / PIECE_BYTES as u64) as usize;

pub struct Receive<D> {
    pub source: Source,
    pub import: Import<D>,
    pub sound: Sound,
    asked: Vec<PieceRun>,
    /// Pieces that came wrong.
    strikes: u32,
}

/// Looks at a part whose record is lost, one piece a wake.
pub struct Recheck<D> {
    pub receive: Box<Receive<D>>,
    next: PieceIndex,
}

impl<D: Disk> Receive<D> {
    pub fn new(source: Source, import: Import<D>, sound: Sound) -> Box<Receive<D>> {
        Box::new(Receive {
            source,
            import,
            sound,
            asked: Vec::new(),
            strikes: 0,
        })
    }

    /// What is stored can still be read.
    pub fn is_well(&self) -> bool {
        let stored = self.import.have().iter().next();
        stored.is_none_or(|piece| self.import.read(piece).is_ok())
    }

    /// Takes the pieces that came with the header.
    fn feed_head(&mut self, now_ms: u64) -> Result<(), StoreError> {
        let id = self.import.id();
        let pieces = self.sound.bytes.chunks(PIECE_BYTES as usize);
        for (index, bytes) in (0..).map(PieceIndex).zip(pieces) {
            let (_, len) = id.piece_range(index);
            if bytes.len() == len as usize && !self.import.have().contains(index) {
                self.import.feed(now_ms, index, bytes)?;
            }
        }
        // They are stored now.
        self.sound.bytes = Vec::new();
        Ok(())
    }
}

fn one_piece(id: ModelId, at: u64) -> PieceRun {
    let first = PieceIndex((at / u64::from(PIECE_BYTES)) as u32);
    let (at, len) = id.piece_range(first);
    PieceRun {
        first,
        count: 1,
        at,
        len: len.into(),
    }
}

impl<D> Recheck<D> {
    pub fn new(receive: Box<Receive<D>>) -> Recheck<D> {
        Recheck {
            receive,
            next: PieceIndex(0),
        }
    }
}

impl<D: Disk> Job<D> {
    pub(super) fn on_recheck<E: Engine<File = D>>(
        &mut self,
        mut recheck: Box<Recheck<D>>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let import = &mut recheck.receive.import;
        let id = import.id();
        let piece = recheck.next;
        if piece.0 >= id.pieces() {
            return self.begin_receive(recheck.receive, bench);
        }
        if let Err(error) = import.recheck(bench.desk.now_ms, piece) {
            self.stage = Stage::Receive(recheck.receive);
            return Err(error.into());
        }
        recheck.next = PieceIndex(piece.0 + 1);
        let (at, len) = id.piece_range(piece);
        let bytes = [at + u64::from(len), id.length];
        let pieces = [piece.0 + 1, id.pieces()];
        self.tell(bench.desk, ImportPhase::Checking, bytes, pieces);
        bench.desk.wake();
        Ok(Stage::Recheck(recheck))
    }

    pub(super) fn begin_receive<E: Engine<File = D>>(
        &mut self,
        mut receive: Box<Receive<D>>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        // The first report of this phase says where a resumed import starts.
        self.meter = Default::default();
        self.tell_received(receive.import.progress(), bench);
        if let Err(error) = receive.feed_head(bench.desk.now_ms) {
            self.stage = Stage::Receive(receive);
            return Err(error.into());
        }
        bench.desk.fetch_rest(receive.source, receive.import.have());
        self.go_on(receive, bench)
    }

    pub(super) fn on_receive<E: Engine<File = D>>(
        &mut self,
        mut receive: Box<Receive<D>>,
        at: u64,
        bytes: &[u8],
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let asked = receive.asked.iter().position(|run| run.at == at);
        let run = match (asked, receive.source) {
            (Some(index), _) => receive.asked.swap_remove(index),
            // They choose the order themselves.
            (None, Source::Peers(_)) => one_piece(receive.import.id(), at),
            (None, _) => return Ok(Stage::Receive(receive)),
        };
        match self.feed_run(&mut receive, run, bytes, bench) {
            Ok(()) => self.go_on(receive, bench),
            Err(end) => {
                self.stage = Stage::Receive(receive);
                Err(end)
            }
        }
    }

    pub(super) fn on_receive_whole<E: Engine<File = D>>(
        &mut self,
        mut receive: Box<Receive<D>>,
        whole: &VerifiedPiece,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        match receive.import.feed_whole(bench.desk.now_ms, whole) {
            Ok(_) => {
                bench.desk.piece_stored(receive.source, whole.piece());
                self.tell_received(receive.import.progress(), bench);
                self.go_on(receive, bench)
            }
            Err(error) => {
                self.stage = Stage::Receive(receive);
                Err(error.into())
            }
        }
    }

    fn feed_run<E: Engine<File = D>>(
        &mut self,
        receive: &mut Receive<D>,
        run: PieceRun,
        bytes: &[u8],
        bench: &mut Bench<'_, E>,
    ) -> Result<(), End> {
        if bytes.len() as u64 != run.len {
            let (expected, found) = (run.len, bytes.len() as u64);
            receive.import.release(run);
            return Err(SourceFault::Short { expected, found }.into());
        }
        for (piece, bytes) in run.pieces().zip(bytes.chunks(PIECE_BYTES as usize)) {
            match receive.import.feed(bench.desk.now_ms, piece, bytes) {
                Ok(_) => bench.desk.piece_stored(receive.source, piece),
                Err(error @ StoreError::DigestMismatch { .. }) => {
                    receive.strikes += 1;
                    // A file on this device does not change by being read again.
                    let is_local = matches!(self.origin, Origin::File { .. });
                    let is_enough = receive.strikes > STRIKES_MAX || self.places.has_another();
                    if is_local || is_enough {
                        return Err(wrong_piece(&error, bytes));
                    }
                }
                Err(error) => return Err(error.into()),
            }
            self.tell_received(receive.import.progress(), bench);
        }
        Ok(())
    }

    /// What is still missing comes from another source.
    pub(super) fn receive_from<E: Engine<File = D>>(
        &mut self,
        mut receive: Box<Receive<D>>,
        source: Source,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        receive.source = source;
        receive.strikes = 0;
        for run in &receive.asked {
            bench.desk.need(source, run.at, run.len as u32);
        }
        self.go_on(receive, bench)
    }

    /// Asks for more, or closes a complete import.
    fn go_on<E: Engine<File = D>>(
        &mut self,
        mut receive: Box<Receive<D>>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        // Piece by piece: what has come of a request that breaks off is kept.
        while !matches!(receive.source, Source::Peers(_))
            && receive.asked.len() < WANTED_MAX
            && let Some(run) = receive.import.next_wanted(PIECE_BYTES.into())
        {
            bench.desk.need(receive.source, run.at, run.len as u32);
            receive.asked.push(run);
        }
        if !receive.import.is_complete() {
            return Ok(Stage::Receive(receive));
        }
        let progress = receive.import.progress();
        let Receive { import, sound, .. } = *receive;
        let id = import.finish(bench.desk.now_ms)?.id;
        self.tell_received(progress, bench);
        let mut model = sound.summary(id, id.length);
        model.partial = None;
        let outcome = Outcome::Imported {
            model,
            already_here: false,
        };
        let closing = Closing::complete(id.root, outcome);
        Ok(self.close(closing, bench))
    }

    fn tell_received<E>(&mut self, progress: Progress, bench: &mut Bench<'_, E>) {
        let bytes = [progress.bytes, progress.bytes_total];
        let pieces = [progress.pieces, progress.pieces_total];
        self.tell(bench.desk, ImportPhase::Receiving, bytes, pieces);
    }
}
