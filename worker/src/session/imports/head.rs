//! From the first bytes to a sound header of a model that fits.

use format::{Hasher, Header, ModelId, PIECE_BYTES, PieceIndex, PieceLayer, piece_hash};
use protocol::{CatalogueEntry, ImportPhase, Stage as Place, TrResult};
use store::{Disk, StoreError, looks_like_a_page, names};

use super::convert_in::Convert;
use super::opening::Opening;
use super::{Bench, End, Job, Origin, Sound, Stage};
use crate::engine::{Engine, EngineError};
use crate::session::loading::{CONTEXT_LEAST, default_options};
use crate::session::shelf::summary;
use crate::session::{FileAnswer, FileOp};
use crate::source::{Source, SourceFault, beginning};
use crate::words;

/// Longest model that a 32-bit lane could ever hold.
const MODEL_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Bytes of a local file that are read at a time.
const WINDOW_BYTES: u64 = 4 * 1024 * 1024;

/// Collects the file's beginning until the header is whole.
pub struct Head<D> {
    source: Source,
    length: u64,
    /// Known when the file's identity came first; then every piece is checked.
    layer: Option<PieceLayer>,
    /// What an earlier start left.
    part: Option<D>,
    bytes: Vec<u8>,
}

/// An earlier start's part file is being opened.
pub struct Part {
    source: Source,
    layer: PieceLayer,
}

/// Reads a local file once to learn its identity.
pub struct Hash {
    source: Source,
    sound: Sound,
    hasher: Hasher,
    at: u64,
}

impl<D> Head<D> {
    /// Bytes that are asked for next: one piece.
    pub fn next_len(&self) -> u32 {
        let left = self.length - self.bytes.len() as u64;
        left.min(u64::from(PIECE_BYTES)) as u32
    }
}

impl<D: Disk> Job<D> {
    pub(super) fn ask_for_layer<E: Engine<File = D>>(
        &mut self,
        entry: &CatalogueEntry,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let (root, length) = (entry.root, entry.length);
        if let Some(here) = bench.shelf.complete(ModelId { root, length }) {
            return Err(End::AlreadyHere(here.clone()));
        }
        check_length(length)?;
        let source = bench.desk.address(&entry.pieces_url, None);
        self.sources.push(source);
        bench.desk.need_whole(source, layer_len(length));
        Ok(Stage::Layer(source))
    }

    pub(super) fn on_layer<E: Engine<File = D>>(
        &mut self,
        bytes: &[u8],
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let Origin::Catalogue(entry) = &self.origin else {
            return Ok(Stage::Waiting);
        };
        let (root, length) = (entry.root, entry.length);
        let layer = PieceLayer::parse(ModelId { root, length }, bytes)
            .map_err(|error| page_or(bytes, words::format_error(&error, Place::Import)))?;
        let source = bench.desk.address(&entry.url, Some(length));
        self.sources.push(source);
        let part = names::part(root);
        if bench.desk.names.contains(&part) {
            bench.desk.files(self.owner(), FileOp::Open(part));
            self.waits_for_files = true;
            return Ok(Stage::Part(Box::new(Part { source, layer })));
        }
        let head = Head {
            source,
            length,
            layer: Some(layer),
            part: None,
            bytes: Vec::new(),
        };
        self.collect(Box::new(head), bench)
    }

    pub(super) fn on_part<E: Engine<File = D>>(
        &mut self,
        part: Part,
        answer: Result<FileAnswer<D>, StoreError>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let Part { source, layer } = part;
        let part = match answer? {
            FileAnswer::Opened(disk) => Some(disk),
            _ => None,
        };
        let head = Head {
            source,
            length: layer.id.length,
            layer: Some(layer),
            part,
            bytes: Vec::new(),
        };
        self.collect(Box::new(head), bench)
    }

    pub(super) fn ask_for_first_bytes<E: Engine<File = D>>(
        &mut self,
        source: Source,
        length: u64,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        if length == 0 {
            let what = "the file is empty";
            let remedy = "choose a .slm or GGUF file";
            return Err(words::report(TrResult::Source, Place::Import, what, remedy).into());
        }
        let len = length.min(u64::from(PIECE_BYTES)) as u32;
        bench.desk.need(source, 0, len);
        Ok(Stage::Sniff)
    }

    /// Decides by the first bytes, not by the name: people rename files.
    pub(super) fn on_sniff<E: Engine<File = D>>(
        &mut self,
        bytes: Vec<u8>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let Origin::File { source, length, .. } = self.origin.clone() else {
            return Ok(Stage::Waiting);
        };
        // A .slm file begins with a header length below 64 MiB, then `{`.
        let is_safetensors = bytes.get(4..9) == Some(b"\0\0\0\0{");
        if !is_safetensors {
            // Every other file gets the converter's answer, which knows what things look like.
            return self.start_convert(source, length, bytes, bench);
        }
        check_length(length)?;
        let head = Head {
            source,
            length,
            layer: None,
            part: None,
            bytes,
        };
        self.collect(Box::new(head), bench)
    }

    pub(super) fn on_head<E: Engine<File = D>>(
        &mut self,
        mut head: Box<Head<D>>,
        at: u64,
        bytes: &[u8],
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        if at != head.bytes.len() as u64 {
            return Ok(Stage::Head(head));
        }
        let expected = head.next_len() as usize;
        if bytes.len() != expected {
            let (expected, found) = (expected as u64, bytes.len() as u64);
            return Err(SourceFault::Short { expected, found }.into());
        }
        if let Some(layer) = &head.layer {
            let piece = PieceIndex((at / u64::from(PIECE_BYTES)) as u32);
            check_piece(layer, piece, bytes)?;
        }
        head.bytes.extend_from_slice(bytes);
        self.collect(head, bench)
    }

    /// Takes what an earlier start left, asks for more, or goes on with a whole header.
    fn collect<E: Engine<File = D>>(
        &mut self,
        mut head: Box<Head<D>>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        loop {
            let whole = match head.bytes.first_chunk::<8>() {
                Some(first) => {
                    let len = format::header_len(*first, head.length)
                        .map_err(|error| words::format_error(&error, Place::Import))?;
                    head.bytes.len() as u64 >= len
                }
                None => false,
            };
            if whole {
                return self.judge(*head, bench);
            }
            if !head.read_part() {
                break;
            }
        }
        let at = head.bytes.len() as u64;
        bench.desk.need(head.source, at, head.next_len());
        Ok(Stage::Head(head))
    }

    /// The header is whole: is it sound, and does the model fit?
    fn judge<E: Engine<File = D>>(
        &mut self,
        head: Head<D>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let header = sound_header(&head.bytes, head.length, bench)?;
        let sound = Sound {
            header,
            bytes: head.bytes,
        };
        let source = head.source;
        let Some(layer) = head.layer else {
            let hash = Hash {
                source,
                sound,
                hasher: Hasher::default(),
                at: 0,
            };
            return self.ask_to_hash(Box::new(hash), head.length, bench);
        };
        self.open_files(Opening::new(source, layer, sound, head.part), bench)
    }

    fn ask_to_hash<E: Engine<File = D>>(
        &mut self,
        hash: Box<Hash>,
        length: u64,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let left = length - hash.at;
        self.tell(bench.desk, ImportPhase::Checking, [hash.at, length], [0, 0]);
        if left > 0 {
            let len = left.min(WINDOW_BYTES) as u32;
            bench.desk.need(hash.source, hash.at, len);
            return Ok(Stage::Hash(hash));
        }
        let Hash {
            source,
            sound,
            hasher,
            ..
        } = *hash;
        let layer = hasher.finish();
        if let Some(here) = bench.shelf.complete(layer.id) {
            return Err(End::AlreadyHere(here.clone()));
        }
        let root = layer.id.root;
        self.root = Some(root);
        self.open_files(Opening::new(source, layer, sound, None), bench)
    }

    pub(super) fn on_hash<E: Engine<File = D>>(
        &mut self,
        mut hash: Box<Hash>,
        at: u64,
        bytes: &[u8],
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let length = hash.sound.header.file_len;
        if at == hash.at {
            let expected = (length - at).min(WINDOW_BYTES);
            let found = bytes.len() as u64;
            if found != expected {
                return Err(SourceFault::Short { expected, found }.into());
            }
            hash.hasher.update(bytes);
            hash.at += found;
        }
        self.ask_to_hash(hash, length, bench)
    }

    fn start_convert<E: Engine<File = D>>(
        &mut self,
        source: Source,
        length: u64,
        bytes: Vec<u8>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let convert = Convert::new(self.name(), source, length, bytes)?;
        self.run_convert(Box::new(convert), bench)
    }
}

impl<D: Disk> Head<D> {
    /// Appends the next piece from the part file, if that has it and it is right.
    fn read_part(&mut self) -> bool {
        let (Some(layer), Some(part)) = (&self.layer, &self.part) else {
            return false;
        };
        let piece = PieceIndex((self.bytes.len() / PIECE_BYTES as usize) as u32);
        let (at, len) = layer.id.piece_range(piece);
        let mut bytes = vec![0; len as usize];
        let right = part.read_at(at, &mut bytes).is_ok()
            && len > 0
            && check_piece(layer, piece, &bytes).is_ok();
        if right {
            self.bytes.extend_from_slice(&bytes);
        }
        right
    }
}

/// Parses the header at the start of `bytes` and asks the engine whether such a model fits.
pub(super) fn sound_header<E: Engine>(
    bytes: &[u8],
    length: u64,
    bench: &mut Bench<'_, E>,
) -> Result<Header, End> {
    let refused = |error| End::Refused(words::format_error(&error, Place::Import));
    let len = match bytes.first_chunk::<8>() {
        Some(first) => format::header_len(*first, length).map_err(refused)?,
        None => 8,
    };
    let region = bytes.get(..len as usize).unwrap_or(bytes);
    let header = Header::parse(region, length).map_err(refused)?;
    let context = header.manifest.architecture.context.min(CONTEXT_LEAST);
    let lost = || EngineError::new(TrResult::WorkerFailure, Place::Plan);
    bench
        .engine
        .as_mut()
        .ok_or_else(lost)
        .and_then(|engine| engine.plan(region, length, &default_options(context)))
        .map_err(|error| words::engine_error(&error, Some(&header)))?;
    Ok(header)
}

impl Sound {
    /// What the page is told while the import runs.
    pub(super) fn summary(&self, id: ModelId, done: u64) -> protocol::ModelSummary {
        summary(id, &self.header, Some(done))
    }
}

/// Bytes of the piece layer of a model that passed [`check_length`].
pub(super) fn layer_len(length: u64) -> u32 {
    32 * length.div_ceil(u64::from(PIECE_BYTES)) as u32
}

fn check_length(length: u64) -> Result<(), End> {
    if length <= MODEL_BYTES_MAX {
        return Ok(());
    }
    let what = format!(
        "the model has {}; a browser can hold {}",
        words::megabytes(length),
        words::megabytes(MODEL_BYTES_MAX)
    );
    let remedy = "choose a smaller model";
    Err(words::report(TrResult::OutOfMemory, Place::Import, &what, remedy).into())
}

/// Checks one arrived piece; a web page in its place is named as such.
pub(super) fn check_piece(layer: &PieceLayer, piece: PieceIndex, bytes: &[u8]) -> Result<(), End> {
    let id = layer.id;
    let got = piece_hash(bytes, id.length);
    match layer.hashes().get(piece.0 as usize) {
        Some(want) if *want == got => Ok(()),
        Some(want) => {
            let want = *want;
            Err(wrong_piece(
                &StoreError::DigestMismatch { piece, want, got },
                bytes,
            ))
        }
        None => {
            let pieces = id.pieces();
            Err(StoreError::NoSuchPiece { piece, pieces }.into())
        }
    }
}

/// What arrived is not the model's piece.
pub(super) fn wrong_piece(error: &StoreError, bytes: &[u8]) -> End {
    let mut report = words::store_error(error, Place::Import);
    report.remedy = "The server's file is damaged or another one; tell whoever runs it.".into();
    page_or(bytes, report)
}

/// Names a web page as such, and otherwise reports what was found.
fn page_or(bytes: &[u8], report: protocol::ErrorReport) -> End {
    if looks_like_a_page(bytes) {
        let first = beginning(bytes);
        return SourceFault::Page { first }.into();
    }
    report.into()
}
