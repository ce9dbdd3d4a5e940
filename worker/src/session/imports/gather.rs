//! From an address to files that can be judged, and from judged files to the disk.
//!
//! ```text
//! address -> Left (what an earlier start has of it) -> Probe (first pieces, lengths)
//!         -> Sniff, Head or Convert, as for a local file -> Room (all of it will be kept) -> ..
//! ```

use convert::{Converter, Options, SourceFile};
use protocol::ImportPhase;
use store::{Disk, RawFile, StoreError, Transfer, Trust, names, preflight};

use super::check::page_or;
use super::close::{Closing, Outcome};
use super::convert_in::Convert;
use super::job::{Bench, End, Happening, Job, Origin, Stage};
use super::local::Hash;
use super::opening::keep_layer;
use super::remote::{Remote, addresses};
use crate::engine::Engine;
use crate::session::shelf::{nameless_of, summary};
use crate::session::{FileAnswer, FileOp};
use crate::source::{Source, SourceFault};
use crate::words;

/// How often a file that changed under way is begun anew.
const RESTARTS_MAX: u32 = 2;

/// The files of remote sources are being opened, two for each.
pub struct Files<D> {
    /// Which of the remotes is at hand.
    index: usize,
    part: Option<D>,
    then: Then<D>,
}

pub enum Then<D> {
    /// They are what an earlier start left: ask for the rest.
    Probe,
    /// Nobody knows how long the file is: it is kept as it comes, and judged at its end.
    Pour,
    Hash(Box<Hash>),
    Convert(Box<Convert<D>>),
}

/// A `.slm` file from an address is whole: its piece layer is being written.
pub struct Adopt {
    pub hash: Box<Hash>,
    pub layer: format::PieceLayer,
}

impl<D: Disk> Job<D> {
    pub(super) fn begin_address<E: Engine<File = D>>(
        &mut self,
        url: &str,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        self.remotes = addresses(url).iter().map(|url| Remote::new(url)).collect();
        self.next_left(Files::new(Then::Probe), bench)
    }

    /// Opens what an earlier start left of the next file, or asks the servers.
    fn next_left<E: Engine<File = D>>(
        &mut self,
        mut files: Files<D>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        while let Some(remote) = self.remotes.get(files.index) {
            let pair = [names::raw(remote.key), names::got(remote.key)];
            if pair.iter().all(|name| bench.desk.names.contains(name)) {
                let [raw, got] = pair;
                let name = if files.part.is_some() { got } else { raw };
                self.waits_for_files = true;
                bench.desk.files(self.owner(), FileOp::Open(name));
                return Ok(Stage::Files(Box::new(files)));
            }
            files.index += 1;
        }
        for remote in &mut self.remotes {
            let transfer = match &remote.raw {
                Some(raw) => Transfer::resumed(raw.about().length, &raw.about().validator),
                None => Transfer::new(Trust::Server, None),
            };
            remote.source = bench.desk.transfer(&remote.url, transfer);
            self.sources.push(remote.source);
            remote.probe(bench.desk);
        }
        self.go_on_probing(bench)
    }

    /// Judges the files as soon as the beginning of each is here.
    pub(super) fn go_on_probing<E: Engine<File = D>>(
        &mut self,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        self.tell_fetched(bench);
        if let [remote] = self.remotes.as_mut_slice()
            && remote.is_endless(bench.desk)
        {
            return self.pour(bench);
        }
        if !self.remotes.iter().all(Remote::knows_its_beginning) {
            return Ok(Stage::Probe);
        }
        if let [remote] = self.remotes.as_slice() {
            let (source, length) = (remote.source, remote.length.unwrap_or(0));
            let first = remote.first()?;
            return self.sniff(source, length, first, bench);
        }
        let list = self.remotes.iter().map(|remote| SourceFile {
            name: remote.name().into(),
            len: remote.length.unwrap_or(0),
        });
        let converter = Converter::gguf_parts(list.collect(), Options::default())
            .map_err(|error| words::convert_error(&error))?;
        let sources = self.remotes.iter().map(|remote| remote.source).collect();
        let convert = Convert::of(converter, sources, Vec::new());
        self.run_convert(Box::new(convert), bench)
    }

    /// The model is judged: from here on everything that comes is kept, if there is room.
    /// `output` is what will be written besides.
    pub(super) fn keep_remotes<E: Engine<File = D>>(
        &mut self,
        then: Then<D>,
        output: u64,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        self.output_bytes = output;
        self.waits_for_files = true;
        bench.desk.files(self.owner(), FileOp::Estimate);
        Ok(Stage::Files(Box::new(Files::new(then))))
    }

    pub(super) fn on_files<E: Engine<File = D>>(
        &mut self,
        mut files: Box<Files<D>>,
        answer: Result<FileAnswer<D>, StoreError>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        match answer? {
            FileAnswer::Estimate(estimate) => {
                let missing = self.remotes.iter().filter(|remote| remote.raw.is_none());
                let raw: u64 = missing.map(|remote| remote.length.unwrap_or(0)).sum();
                preflight(estimate, raw + self.output_bytes)?;
            }
            FileAnswer::Opened(disk) => match files.part.take() {
                None => files.part = Some(disk),
                Some(part) => self.pair(&mut files, part, disk, bench)?,
            },
            FileAnswer::Listed(_) | FileAnswer::Done => {}
        }
        if let Then::Probe = files.then {
            return self.next_left(*files, bench);
        }
        self.next_file(*files, bench)
    }

    /// Both files of one remote are open.
    fn pair<E: Engine<File = D>>(
        &mut self,
        files: &mut Files<D>,
        part: D,
        record: D,
        bench: &mut Bench<'_, E>,
    ) -> Result<(), StoreError> {
        let Some(remote) = self.remotes.get_mut(files.index) else {
            return Ok(());
        };
        files.index += 1;
        match files.then {
            Then::Probe => {
                remote.raw = RawFile::resume(part, record)?;
                remote.length = remote.raw.as_ref().map(|raw| raw.about().length);
                Ok(())
            }
            _ => remote.keep_in(part, record, bench.desk),
        }
    }

    /// Opens the files of the next remote that has none, or goes on.
    pub(super) fn next_file<E: Engine<File = D>>(
        &mut self,
        mut files: Files<D>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        while let Some(remote) = self.remotes.get(files.index) {
            if remote.raw.is_none() {
                let name = match files.part {
                    None => names::raw(remote.key),
                    Some(_) => names::got(remote.key),
                };
                self.waits_for_files = true;
                bench.desk.open_or_create(self.owner(), name);
                return Ok(Stage::Files(Box::new(files)));
            }
            files.index += 1;
        }
        self.shelve_remotes(bench);
        match files.then {
            Then::Probe | Then::Pour => self.go_on_probing(bench),
            Then::Hash(hash) => {
                let length = self.remotes[0].length.unwrap_or(0);
                self.ask_to_hash(hash, length, bench)
            }
            Then::Convert(convert) => self.run_convert(convert, bench),
        }
    }

    /// Shows what is kept, so that it can be deleted.
    pub(super) fn shelve_remotes<E>(&mut self, bench: &mut Bench<'_, E>) {
        for remote in self.remotes.iter().filter(|remote| remote.raw.is_some()) {
            let length = remote.length.unwrap_or(0);
            let bytes = remote.bytes();
            let summary = nameless_of(remote.key, length, remote.name(), bytes);
            bench.shelf.put(summary);
        }
    }

    /// A file from an address is hashed to its end: it gets its name where it lies.
    pub(super) fn adopt<E: Engine<File = D>>(
        &mut self,
        hash: Box<Hash>,
        layer: format::PieceLayer,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let name = names::pieces(layer.id.root);
        self.root = Some(layer.id.root);
        self.waits_for_files = true;
        bench.desk.open_or_create(self.owner(), name);
        Ok(Stage::Adopt(Box::new(Adopt { hash, layer })))
    }

    pub(super) fn on_adopt<E: Engine<File = D>>(
        &mut self,
        adopt: Adopt,
        answer: Result<FileAnswer<D>, StoreError>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        if let FileAnswer::Opened(disk) = answer? {
            keep_layer(disk, &adopt.layer)?;
        }
        let id = adopt.layer.id;
        let outcome = Outcome::Imported {
            model: summary(id, adopt.hash.header(), None),
            already_here: false,
        };
        let mut removed = self.close_remotes(bench);
        let from = removed.remove(0);
        let to = names::done(id.root);
        let mut ops = vec![FileOp::Rename { from, to }];
        ops.extend(removed.into_iter().map(FileOp::Remove));
        Ok(self.close(Closing::new(ops, outcome), bench))
    }

    /// Closes the files of all remotes and takes them off the shelf; their names.
    pub(super) fn close_remotes<E>(&mut self, bench: &mut Bench<'_, E>) -> Vec<String> {
        let mut all = Vec::new();
        for mut remote in std::mem::take(&mut self.remotes) {
            let pair = [names::raw(remote.key), names::got(remote.key)];
            all.extend(
                pair.into_iter()
                    .filter(|name| bench.desk.names.contains(name)),
            );
            bench.shelf.take(remote.key);
            if let Some(raw) = &mut remote.raw
                && raw.close().is_err()
            {
                // It is removed or renamed next, and that tells.
            }
        }
        all
    }

    /// Asks for bytes of a local file or of one from an address.
    pub(super) fn need<E>(&mut self, source: Source, at: u64, len: u32, bench: &mut Bench<'_, E>) {
        let mut remotes = self.remotes.iter_mut();
        match remotes.find(|remote| remote.source == source) {
            Some(remote) => remote.ask(at, len, bench.desk),
            None => bench.desk.need(source, at, len),
        }
    }

    pub(super) fn tell_fetched<E>(&mut self, bench: &mut Bench<'_, E>) {
        let bytes = self.remotes.iter().map(Remote::bytes).sum();
        let total = self
            .remotes
            .iter()
            .map(|remote| remote.length.unwrap_or(0))
            .sum();
        let pieces = self.remotes.iter().map(Remote::pieces);
        let pieces = pieces.fold([0, 0], |sum, [done, all]| [sum[0] + done, sum[1] + all]);
        self.tell(bench.desk, ImportPhase::Receiving, [bytes, total], pieces);
    }

    /// What a stage asked of an address, if it is here now.
    pub(super) fn ready(&mut self) -> Result<Option<Happening<D>>, StoreError> {
        if self.cancelled.is_some() || self.waits_for_files {
            return Ok(None);
        }
        for remote in &mut self.remotes {
            if let Some((at, bytes)) = remote.take()? {
                let source = remote.source;
                return Ok(Some(Happening::Bytes { source, at, bytes }));
            }
        }
        Ok(None)
    }

    /// A file that changes all the time is no file.
    pub(super) fn may_restart(&self) -> bool {
        !self.remotes.is_empty() && self.restarts < RESTARTS_MAX && !self.waits_for_files
    }

    /// Makes everything of the old file worthless.
    pub(super) fn begin_anew(&mut self) {
        self.restarts += 1;
        for mut remote in std::mem::take(&mut self.remotes) {
            if let Some(raw) = &mut remote.raw
                && raw.forget().and_then(|()| raw.close()).is_err()
            {
                // The validator of the new file will not be that of the old one.
            }
        }
    }

    /// Something of an address is still on its way.
    pub(super) fn is_fetching(&self) -> bool {
        self.remotes.iter().any(|remote| !remote.is_whole())
    }
}

impl<D> Files<D> {
    pub(super) fn new(then: Then<D>) -> Files<D> {
        let (index, part) = (0, None);
        Files { index, part, then }
    }
}

impl<D: Disk> Job<D> {
    /// Several local files: the parts of one GGUF model, or a folder.
    pub(super) fn begin_files<E: Engine<File = D>>(
        &mut self,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let Origin::Files { name, files } = self.origin.clone() else {
            return Ok(Stage::Waiting);
        };
        let list: Vec<SourceFile> = files
            .iter()
            .map(|(_, name, len)| SourceFile {
                name: name.clone(),
                len: *len,
            })
            .collect();
        let is_gguf = |file: &SourceFile| file.name.to_ascii_lowercase().ends_with(".gguf");
        let converter = match list.iter().any(is_gguf) {
            true => Converter::gguf_parts(list, Options::default()),
            false => Converter::folder(&name, list, Options::default()),
        };
        let converter = converter.map_err(|error| words::convert_error(&error))?;
        let sources = files.iter().map(|(source, _, _)| *source).collect();
        self.run_convert(Box::new(Convert::of(converter, sources, Vec::new())), bench)
    }

    /// Says which of several files a fault is about.
    pub(super) fn named(&self, source: Source, fault: &SourceFault) -> End {
        let mut report = match fault {
            SourceFault::Transfer(store::TransferFault::Page { first }) => {
                match page_or(first, fault.report()) {
                    End::BadSource(report) => report,
                    end => return end,
                }
            }
            _ => fault.report(),
        };
        let remotes = &self.remotes;
        let at = remotes.iter().position(|remote| remote.source == source);
        if let Some(at) = at.filter(|_| remotes.len() > 1) {
            let (number, count, name) = (at + 1, remotes.len(), remotes[at].name());
            report.what = format!("Part {number} of {count} ({name}): {}", report.what);
        }
        End::BadSource(report)
    }
}
