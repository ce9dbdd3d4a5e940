//! A dropped file: what it is, and which model it holds.

use format::{Hasher, PIECE_BYTES, PieceLayer};
use protocol::{ImportPhase, Stage as Place, TrResult};
use store::Disk;

use super::check::check_length;
use super::convert_in::Convert;
use super::gather::Then;
use super::head::Head;
use super::job::{Bench, End, Job, Origin, Sound, Stage};
use super::opening::Opening;
use crate::engine::Engine;
use crate::session::shelf::Lent;
use crate::source::{Source, SourceFault};
use crate::words;

/// Bytes of a local file that are read at a time.
const WINDOW_BYTES: u64 = 4 * 1024 * 1024;

/// Reads a local file once to learn its identity.
pub struct Hash {
    source: Source,
    sound: Sound,
    hasher: Hasher,
    at: u64,
}

impl Hash {
    pub fn new(source: Source, sound: Sound) -> Box<Hash> {
        Box::new(Hash {
            source,
            sound,
            hasher: Hasher::default(),
            at: 0,
        })
    }

    pub fn header(&self) -> &format::Header {
        &self.sound.header
    }
}

impl<D: Disk> Job<D> {
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
        match self.origin {
            Origin::File { source, length, .. } => self.sniff(source, length, bytes, bench),
            _ => Ok(Stage::Waiting),
        }
    }

    pub(super) fn sniff<E: Engine<File = D>>(
        &mut self,
        source: Source,
        length: u64,
        bytes: Vec<u8>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        // A .slm file begins with a header length below 64 MiB, then `{`.
        let is_safetensors = bytes.get(4..9) == Some(b"\0\0\0\0{");
        if !is_safetensors && matches!(self.origin, Origin::File { is_lent: true, .. }) {
            let what = "only a .slm file can be used without being copied";
            let remedy = "choose it as a file to keep: then it is converted on this device";
            let code = TrResult::UnsupportedFeature;
            return Err(words::report(code, Place::Import, what, remedy).into());
        }
        if !is_safetensors {
            // Every other file gets the converter's answer, which knows what things look like.
            return self.start_convert(source, length, bytes, bench);
        }
        check_length(length)?;
        self.collect(Head::of_file(source, length, bytes), bench)
    }

    pub(super) fn ask_to_hash<E: Engine<File = D>>(
        &mut self,
        mut hash: Box<Hash>,
        length: u64,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        if self.remotes.iter().any(|remote| remote.raw.is_none()) {
            return self.keep_remotes(Then::Hash(hash), 0, bench);
        }
        let left = length - hash.at;
        if !self.is_fetching() {
            self.tell(bench.desk, ImportPhase::Checking, [hash.at, length], [0, 0]);
        }
        if left > 0 {
            let len = left.min(WINDOW_BYTES) as u32;
            self.need(hash.source, hash.at, len, bench);
            return Ok(Stage::Hash(hash));
        }
        let layer = std::mem::take(&mut hash.hasher).finish();
        bench.check_stays(layer.id.root)?;
        if let Some(here) = bench.shelf.complete(layer.id) {
            return Err(End::AlreadyHere(Box::new(here.clone())));
        }
        if !self.remotes.is_empty() {
            return self.adopt(hash, layer, bench);
        }
        let Hash { source, sound, .. } = *hash;
        if matches!(self.origin, Origin::File { is_lent: true, .. }) {
            return Err(self.lend(source, layer, &sound, bench));
        }
        let root = layer.id.root;
        self.root = Some(root);
        self.open_files(Opening::new(source, layer, sound, None), bench)
    }

    /// The file is what it says, and stays where it is for as long as it is used.
    fn lend<E>(
        &mut self,
        source: Source,
        layer: PieceLayer,
        sound: &Sound,
        bench: &mut Bench<'_, E>,
    ) -> End {
        self.sources.clear();
        let mut model = sound.summary(layer.id, layer.id.length);
        (model.partial, model.borrowed) = (None, true);
        bench.shelf.lend(model.clone(), Lent { source, layer });
        End::AlreadyHere(Box::new(model))
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
        let convert = Convert::gguf(self.name(), source, length, bytes)?;
        self.run_convert(Box::new(convert), bench)
    }
}
