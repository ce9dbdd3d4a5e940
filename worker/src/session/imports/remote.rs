//! A file of a server that nobody vouches for. Its pieces come in any order, each once; what was
//! asked of it is answered when all of it is here.

use std::collections::{BTreeMap, BTreeSet};

use format::{PIECE_BYTES, PieceIndex, Root};
use store::{About, Disk, FLIGHTS_MAX, RawFile, StoreError, pieces_of, raw_key};

use crate::session::desk::Desk;
use crate::source::Source;

/// Pieces that are wanted ahead: as many as all requests under way can bring.
const AHEAD: usize = FLIGHTS_MAX * 4;
const PIECE: u64 = PIECE_BYTES as u64;

pub struct Remote<D> {
    pub source: Source,
    pub url: String,
    /// Name under which it is kept.
    pub key: Root,
    /// Known with its first byte.
    pub length: Option<u64>,
    /// Pieces that came before the model was judged.
    early: BTreeMap<u32, Vec<u8>>,
    pub raw: Option<RawFile<D>>,
    wanted: BTreeSet<u32>,
    asked: Option<(u64, u32)>,
}

impl<D> Remote<D> {
    pub fn new(url: &str) -> Remote<D> {
        Remote {
            // Until its address is named it is asked for nothing.
            source: Source::Address(0),
            url: url.into(),
            key: raw_key(url),
            length: None,
            early: BTreeMap::new(),
            raw: None,
            wanted: BTreeSet::new(),
            asked: None,
        }
    }

    /// The last part of the address, for people.
    pub fn name(&self) -> &str {
        file_name(&self.url)
    }
}

impl<D: Disk> Remote<D> {
    /// Asks for bytes. They are given by `take`, after a wake or with a piece that comes.
    pub fn ask(&mut self, at: u64, len: u32, desk: &mut Desk) {
        self.asked = Some((at, len));
        if self.covers(at, len) {
            desk.wake();
        }
        pieces_of(at, len).for_each(|piece| self.want(piece, desk));
        if self.raw.is_some() {
            self.want_ahead(at, desk);
        }
    }

    /// Wants the first piece, with which the length comes.
    pub fn probe(&mut self, desk: &mut Desk) {
        self.want(PieceIndex(0), desk);
    }

    /// A piece came.
    pub fn arrive(&mut self, at: u64, bytes: Vec<u8>, desk: &mut Desk) -> Result<(), StoreError> {
        let piece = (at / PIECE) as u32;
        self.wanted.remove(&piece);
        if let Some(transfer) = desk.transfer_of(self.source) {
            self.length = transfer.length();
        }
        if let Some(raw) = self.raw.as_mut().filter(|raw| raw.is_growing()) {
            if !bytes.is_empty() {
                self.early.insert(piece, bytes);
            }
            while let Some(bytes) = self.early.remove(&next_of(raw)) {
                raw.append(&bytes)?;
            }
            let validator = desk.transfer_of(self.source).map(|it| it.validator());
            if self.length == Some(raw.bytes()) {
                raw.end(desk.now_ms, &validator.unwrap_or_default())?;
                self.early.clear();
            }
            return Ok(());
        }
        match &mut self.raw {
            // Nothing is behind the end.
            _ if bytes.is_empty() => {}
            Some(raw) => {
                raw.put(desk.now_ms, PieceIndex(piece), &bytes)?;
                let from = self.asked.map_or(at, |(at, _)| at);
                self.want_ahead(from, desk);
            }
            None => drop(self.early.insert(piece, bytes)),
        }
        Ok(())
    }

    /// What was asked, if all of it is here.
    pub fn take(&mut self) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let here = self.asked.filter(|(at, len)| self.covers(*at, *len));
        let Some((at, len)) = here else {
            return Ok(None);
        };
        self.asked = None;
        let Some(raw) = &self.raw else {
            let mut bytes = Vec::new();
            for piece in pieces_of(at, len) {
                bytes.extend_from_slice(&self.early[&piece.0]);
            }
            let from = (at % PIECE) as usize;
            return Ok(Some((at, bytes[from..from + len as usize].to_vec())));
        };
        raw.read(at, len).map(|bytes| Some((at, bytes)))
    }

    /// The beginning of the file, as far as it came with the first piece.
    pub fn first(&self) -> Result<Vec<u8>, StoreError> {
        let len = self.length.unwrap_or(0).min(PIECE) as u32;
        match &self.raw {
            Some(raw) if raw.covers(0, len) => raw.read(0, len),
            _ => Ok(self.early.get(&0).cloned().unwrap_or_default()),
        }
    }

    pub fn knows_its_beginning(&self) -> bool {
        let len = self.length.unwrap_or(0).min(PIECE) as u32;
        self.length.is_some() && self.covers(0, len)
    }

    /// Its server does not say how long it is, and its first piece is here.
    pub fn is_endless(&self, desk: &Desk) -> bool {
        let transfer = desk.transfer_of(self.source);
        let is_begun = self.raw.is_some() || self.early.contains_key(&0);
        is_begun && transfer.is_some_and(|transfer| transfer.is_endless())
    }

    /// Wants the next pieces of a file whose end nobody knows.
    pub fn want_more(&mut self, desk: &mut Desk) {
        let next = self.raw.as_ref().map_or(0, next_of);
        (next..next + AHEAD as u32).for_each(|piece| self.want(PieceIndex(piece), desk));
    }

    /// From now on it is kept in these files.
    pub fn keep_in(&mut self, part: D, record: D, desk: &Desk) -> Result<(), StoreError> {
        if self.length.is_none() {
            let mut raw = RawFile::grow(&self.url, part, record)?;
            while let Some(bytes) = self.early.remove(&next_of(&raw)) {
                raw.append(&bytes)?;
            }
            self.raw = Some(raw);
            return Ok(());
        }
        let validator = desk.transfer_of(self.source).map(|it| it.validator());
        let about = About {
            url: self.url.clone(),
            length: self.length.unwrap_or(0),
            validator: validator.unwrap_or_default(),
        };
        let mut raw = RawFile::start(about, part, record)?;
        for (piece, bytes) in std::mem::take(&mut self.early) {
            raw.put(desk.now_ms, PieceIndex(piece), &bytes)?;
        }
        raw.keep(desk.now_ms)?;
        self.raw = Some(raw);
        Ok(())
    }

    /// Bytes that are here.
    pub fn bytes(&self) -> u64 {
        match &self.raw {
            Some(raw) => raw.bytes(),
            None => self.early.values().map(|bytes| bytes.len() as u64).sum(),
        }
    }

    /// Pieces that are here, and all of them.
    pub fn pieces(&self) -> [u32; 2] {
        let here = match &self.raw {
            Some(raw) => raw.have().count(),
            None => self.early.len() as u32,
        };
        [here, self.length.unwrap_or(0).div_ceil(PIECE) as u32]
    }

    pub fn is_whole(&self) -> bool {
        self.raw.as_ref().is_some_and(|raw| raw.have().is_full())
    }

    fn covers(&self, at: u64, len: u32) -> bool {
        match &self.raw {
            Some(raw) => raw.covers(at, len),
            None => pieces_of(at, len).all(|piece| self.early.contains_key(&piece.0)),
        }
    }

    fn want(&mut self, piece: PieceIndex, desk: &mut Desk) {
        let at = u64::from(piece.0) * PIECE;
        let is_here = match &self.raw {
            Some(raw) => raw.holds(piece) || self.early.contains_key(&piece.0),
            None => self.early.contains_key(&piece.0),
        };
        if !is_here && self.length.is_none_or(|length| at < length) && self.wanted.insert(piece.0) {
            desk.need(self.source, at, PIECE_BYTES);
        }
    }

    /// Everything will be needed, so the next pieces are fetched before they are asked for.
    fn want_ahead(&mut self, from: u64, desk: &mut Desk) {
        let Some(raw) = self.raw.as_ref().filter(|_| self.wanted.len() < AHEAD) else {
            return;
        };
        let first = (from / PIECE) as u32;
        let all = (first..raw.have().pieces()).chain(0..first).map(PieceIndex);
        let open =
            |piece: &PieceIndex| !raw.have().contains(*piece) && !self.wanted.contains(&piece.0);
        let next: Vec<PieceIndex> = all.filter(open).take(AHEAD - self.wanted.len()).collect();
        next.into_iter().for_each(|piece| self.want(piece, desk));
    }
}

/// The piece that a growing file takes next.
fn next_of<D: Disk>(raw: &RawFile<D>) -> u32 {
    (raw.bytes() / PIECE) as u32
}

/// The last part of an address without its query.
pub fn file_name(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.rsplit('/').next().unwrap_or(path)
}

/// All addresses of a model that is split over several files, from that of any of them:
/// `name-00002-of-00005.gguf`, as `gguf-split` of llama.cpp names them.
pub fn addresses(url: &str) -> Vec<String> {
    let name = file_name(url);
    let at = name.len() + (name.as_ptr() as usize - url.as_ptr() as usize);
    let (before, query) = url.split_at(at);
    let parts = || {
        let stem = before.strip_suffix(".gguf")?;
        let (rest, count) = stem.rsplit_once("-of-")?;
        let (model, number) = rest.rsplit_once('-')?;
        let is_number = |text: &str| text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit());
        let count: u32 = count.parse().ok().filter(|_| is_number(count))?;
        let is_sound = is_number(number) && (2..=PARTS_MAX).contains(&count);
        is_sound.then(|| {
            (1..=count)
                .map(|no| format!("{model}-{no:05}-of-{count:05}.gguf{query}"))
                .collect()
        })
    };
    parts().unwrap_or_else(|| vec![url.to_owned()])
}

/// Files of one model. No published one has more.
const PARTS_MAX: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_from_any_of_them() {
        let url = "https://h/m/a-00002-of-00003.gguf?download=true";
        let expected =
            [1, 2, 3].map(|no| format!("https://h/m/a-0000{no}-of-00003.gguf?download=true"));
        assert_eq!(addresses(url), expected);
        for other in [
            "https://h/a.gguf",
            "https://h/a-2-of-3.gguf",
            "https://h/a-00002-of-00003.slm",
            "https://h/a-00001-of-00001.gguf",
            "https://h/a-00001-of-99999.gguf",
            "",
        ] {
            assert_eq!(addresses(other), [other]);
        }
        assert_eq!(file_name("https://h/x/b.gguf?y=/z"), "b.gguf");
    }
}
