//! From the first bytes to a sound header of a model that fits.

use format::{ModelId, PIECE_BYTES, PieceIndex, PieceLayer};
use protocol::{CatalogueEntry, InvitedModel, Stage as Place};
use store::{Disk, StoreError, names};

use super::check::{check_length, check_piece, page_or, sound_header};
use super::job::{Bench, End, Job, Origin, Sound, Stage};
use super::local::Hash;
use super::opening::Opening;
use crate::engine::Engine;
use crate::session::{FileAnswer, FileOp};
use crate::source::{Source, SourceFault};
use crate::words;

/// Collects the file's beginning until the header is whole.
pub struct Head<D> {
    pub source: Source,
    length: u64,
    /// Known when the file's identity came first; then every piece is checked.
    layer: Option<PieceLayer>,
    /// What an earlier start left.
    part: Option<D>,
    bytes: Vec<u8>,
}

/// An earlier start's part file is being opened.
pub struct Part {
    pub source: Source,
    layer: PieceLayer,
}

impl<D> Head<D> {
    /// For a file of unknown identity, of which `bytes` are the first.
    pub fn of_file(source: Source, length: u64, bytes: Vec<u8>) -> Box<Head<D>> {
        Box::new(Head {
            source,
            length,
            layer: None,
            part: None,
            bytes,
        })
    }

    /// For a model whose layer is known, and what an earlier start left of it.
    fn of_model(source: Source, layer: PieceLayer, part: Option<D>) -> Box<Head<D>> {
        Box::new(Head {
            source,
            length: layer.id.length,
            layer: Some(layer),
            part,
            bytes: Vec::new(),
        })
    }

    /// Bytes that are asked for next: one piece.
    pub fn next_len(&self) -> u32 {
        let left = self.length - self.bytes.len() as u64;
        left.min(u64::from(PIECE_BYTES)) as u32
    }
}

impl<D: Disk> Job<D> {
    pub(super) fn ask_for_layer<E: Engine<File = D>>(
        &mut self,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let Origin::Catalogue(CatalogueEntry { root, length, .. }) = self.origin else {
            return Ok(Stage::Waiting);
        };
        if let Some(here) = bench.shelf.complete(ModelId { root, length }) {
            return Err(End::AlreadyHere(Box::new(here.clone())));
        }
        check_length(length)?;
        let len = layer_len(length);
        let source = bench
            .desk
            .file_address(self.places.pieces_url(), len.into());
        self.sources.push(source);
        bench.desk.need(source, 0, len);
        Ok(Stage::Layer(source))
    }

    pub(super) fn ask_peers_for_layer<E: Engine<File = D>>(
        &mut self,
        invited: InvitedModel,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let id = invited.id;
        if let Some(here) = bench.shelf.complete(id) {
            return Err(End::AlreadyHere(Box::new(here.clone())));
        }
        check_length(id.length)?;
        let source = bench.desk.fetch_from_peers(invited)?;
        self.sources.push(source);
        Ok(Stage::Layer(source))
    }

    pub(super) fn on_layer<E: Engine<File = D>>(
        &mut self,
        layer_source: Source,
        bytes: &[u8],
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let id = match &self.origin {
            Origin::Catalogue(CatalogueEntry { root, length, .. }) => ModelId {
                root: *root,
                length: *length,
            },
            Origin::Peers(invited) => invited.id,
            _ => return Ok(Stage::Waiting),
        };
        let layer = PieceLayer::parse(id, bytes)
            .map_err(|error| page_or(bytes, words::format_error(&error, Place::Import)))?;
        let source = match &self.origin {
            Origin::Catalogue(_) => {
                let source = bench.desk.file_address(self.places.url(), id.length);
                self.sources.push(source);
                source
            }
            // Peers give the layer and the pieces alike.
            _ => layer_source,
        };
        let part = names::part(id.root);
        if bench.desk.names.contains(&part) {
            bench.desk.files(self.owner(), FileOp::Open(part));
            self.waits_for_files = true;
            return Ok(Stage::Part(Box::new(Part { source, layer })));
        }
        self.collect(Head::of_model(source, layer, None), bench)
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
        self.collect(Head::of_model(source, layer, part), bench)
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
            self.stage = Stage::Head(head);
            return Err(SourceFault::Short { expected, found }.into());
        }
        if let Some(layer) = &head.layer {
            let piece = PieceIndex((at / u64::from(PIECE_BYTES)) as u32);
            if let Err(end) = check_piece(layer, piece, bytes) {
                // What was right before it is kept for another source.
                self.stage = Stage::Head(head);
                return Err(end);
            }
        }
        head.bytes.extend_from_slice(bytes);
        self.collect(head, bench)
    }

    /// Takes what an earlier start left, asks for more, or goes on with a whole header.
    pub(super) fn collect<E: Engine<File = D>>(
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
        self.need(head.source, at, head.next_len(), bench);
        Ok(Stage::Head(head))
    }

    /// The header is whole: is it sound, and does the model fit?
    fn judge<E: Engine<File = D>>(
        &mut self,
        head: Head<D>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let model = head.layer.as_ref().map(|layer| layer.id);
        let header = sound_header(&head.bytes, head.length, model, bench)?;
        let sound = Sound {
            header,
            bytes: head.bytes,
        };
        let source = head.source;
        let Some(layer) = head.layer else {
            let hash = Hash::new(source, sound);
            return self.ask_to_hash(hash, head.length, bench);
        };
        self.open_files(Opening::new(source, layer, sound, head.part), bench)
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

/// Bytes of the piece layer of a model that passed [`check_length`].
pub(super) fn layer_len(length: u64) -> u32 {
    32 * length.div_ceil(u64::from(PIECE_BYTES)) as u32
}
