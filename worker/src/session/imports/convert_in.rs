//! A foreign format becomes a `.slm` file on its way in.

use convert::{Converter, Need, Options, Phase, Step};
use format::{Header, ModelId, PieceLayer};
use protocol::ImportPhase;
use store::{Disk, SequentialImport, StoreError, names, preflight};

use super::check::sound_header;
use super::close::{Closing, Outcome};
use super::gather::Then;
use super::job::{Bench, End, Happening, Job, Stage};
use super::opening::keep_layer;
use crate::engine::Engine;
use crate::session::shelf::summary;
use crate::session::{FileAnswer, FileOp};
use crate::source::{Source, SourceFault};
use crate::words;

pub struct Convert<D> {
    converter: Converter,
    /// The files, in the order the converter knows them by.
    sources: Vec<Source>,
    /// The first file's first bytes, which were read to see what it is.
    first: Vec<u8>,
    /// The model was judged by what its descriptions say.
    is_judged: bool,
    /// What is on its way.
    asked: Option<Need>,
    phase: Option<ImportPhase>,
    pub sink: Sink<D>,
}

/// Where the output goes.
pub enum Sink<D> {
    /// Nothing was written yet: a refusal leaves no trace.
    Nowhere,
    /// There may be room for it; these bytes are its first.
    Room { bytes: Vec<u8> },
    /// The file is being made; these bytes are its first.
    Opening { name: String, bytes: Vec<u8> },
    Open {
        name: String,
        import: Box<SequentialImport<D>>,
    },
    /// Complete; its piece layer is being written.
    Layer {
        name: String,
        layer: Box<PieceLayer>,
        header: Box<Header>,
    },
}

/// What one turn of the converter asks for.
enum Turn {
    Again,
    Wait,
    /// Keep what comes of addresses; the output has so many bytes.
    Keep(u64),
    Done,
}

impl<D> Sink<D> {
    /// The file that this conversion made and nothing needs if it ends early.
    pub fn name(&self) -> Option<&String> {
        match self {
            Sink::Nowhere | Sink::Room { .. } => None,
            Sink::Opening { name, .. } | Sink::Open { name, .. } | Sink::Layer { name, .. } => {
                Some(name)
            }
        }
    }
}

impl<D: Disk> Convert<D> {
    /// Bytes of the output that are not written yet.
    pub fn lacks(&self) -> u64 {
        let length = self.converter.header().map_or(0, |head| head.file_len);
        match &self.sink {
            Sink::Open { import, .. } => length.saturating_sub(import.bytes()),
            _ => length,
        }
    }
}

impl<D> Convert<D> {
    /// One GGUF file, of which `first` is the beginning.
    pub fn gguf(
        name: &str,
        source: Source,
        length: u64,
        first: Vec<u8>,
    ) -> Result<Convert<D>, End> {
        let converter = Converter::gguf(name, length, Options::default())
            .map_err(|error| words::convert_error(&error))?;
        Ok(Convert::of(converter, vec![source], first))
    }

    pub fn of(converter: Converter, sources: Vec<Source>, first: Vec<u8>) -> Convert<D> {
        Convert {
            converter,
            sources,
            first,
            is_judged: false,
            asked: None,
            phase: None,
            sink: Sink::Nowhere,
        }
    }
}

impl<D: Disk> Job<D> {
    pub(super) fn on_convert<E: Engine<File = D>>(
        &mut self,
        mut convert: Box<Convert<D>>,
        happening: Happening<D>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let taken = match happening {
            Happening::Bytes { at, bytes, .. } => take_bytes(&mut convert, at, &bytes),
            Happening::File(answer) => match &convert.sink {
                Sink::Layer { .. } => return self.on_converted_layer(convert, answer, bench),
                Sink::Room { .. } => self.on_room(&mut convert, answer, bench),
                _ => take_file(&mut convert, answer),
            },
            _ => Ok(()),
        };
        if let Err(end) = taken {
            self.stage = Stage::Convert(convert);
            return Err(end);
        }
        self.run_convert(convert, bench)
    }

    /// One turn, unless something is awaited.
    pub(super) fn run_convert<E: Engine<File = D>>(
        &mut self,
        mut convert: Box<Convert<D>>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let waits = convert.asked.is_some() || self.waits_for_files;
        if waits {
            return Ok(Stage::Convert(convert));
        }
        let turn = self.turn(&mut convert, bench);
        self.tell_converted(&mut convert, bench);
        match turn {
            Ok(Turn::Again) => {
                bench.desk.wake();
                Ok(Stage::Convert(convert))
            }
            Ok(Turn::Wait) => Ok(Stage::Convert(convert)),
            Ok(Turn::Keep(output)) => self.keep_remotes(Then::Convert(convert), output, bench),
            Ok(Turn::Done) => self.end_convert(convert, bench),
            Err(end) => {
                self.stage = Stage::Convert(convert);
                Err(end)
            }
        }
    }

    fn turn<E: Engine<File = D>>(
        &mut self,
        convert: &mut Convert<D>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Turn, End> {
        if let Some(output) = judge(convert, bench)?
            && self.remotes.iter().any(|remote| remote.raw.is_none())
        {
            return Ok(Turn::Keep(output));
        }
        let step = convert.converter.poll();
        match step.map_err(|error| words::convert_error(&error))? {
            Step::Need(need) => {
                convert.asked = Some(need);
                let end = need.at + u64::from(need.len);
                // The first bytes are here already.
                if need.source > 0 || end > convert.first.len() as u64 {
                    let source = convert.sources[need.source as usize];
                    self.need(source, need.at, need.len, bench);
                    return Ok(Turn::Wait);
                }
                let first = std::mem::take(&mut convert.first);
                let taken = take_bytes(convert, need.at, &first[need.at as usize..end as usize]);
                convert.first = first;
                taken.map(|()| Turn::Again)
            }
            Step::Write(bytes) => match &mut convert.sink {
                Sink::Open { import, .. } => {
                    import.append(bytes)?;
                    Ok(Turn::Again)
                }
                _ => {
                    let bytes = bytes.to_vec();
                    self.open_sink(convert, bytes, bench)?;
                    Ok(Turn::Wait)
                }
            },
            Step::Done(_) => Ok(Turn::Done),
        }
    }

    /// The header is known, so the model can be judged before anything is stored.
    fn open_sink<E: Engine<File = D>>(
        &mut self,
        convert: &mut Convert<D>,
        bytes: Vec<u8>,
        bench: &mut Bench<'_, E>,
    ) -> Result<(), End> {
        if let Some(header) = convert.converter.header() {
            sound_header(&header.to_bytes(), header.file_len, None, bench)?;
        }
        self.waits_for_files = true;
        bench.desk.files(self.owner(), FileOp::Estimate);
        convert.sink = Sink::Room { bytes };
        Ok(())
    }

    /// The browser's figures: refused before the first byte, or the file is made.
    fn on_room<E: Engine<File = D>>(
        &mut self,
        convert: &mut Convert<D>,
        answer: Result<FileAnswer<D>, StoreError>,
        bench: &mut Bench<'_, E>,
    ) -> Result<(), End> {
        let length = convert.converter.header().map_or(0, |head| head.file_len);
        if let FileAnswer::Estimate(estimate) = answer? {
            preflight(estimate, length)?;
        }
        if let Sink::Room { bytes } = &mut convert.sink {
            let bytes = std::mem::take(bytes);
            let name = names::incoming(*bench.incoming);
            *bench.incoming += 1;
            self.waits_for_files = true;
            bench.desk.open_or_create(self.owner(), name.clone());
            convert.sink = Sink::Opening { name, bytes };
        }
        Ok(())
    }

    fn tell_converted<E>(&mut self, convert: &mut Convert<D>, bench: &mut Bench<'_, E>) {
        let progress = convert.converter.progress();
        let phase = match progress.phase {
            Phase::Reading | Phase::Checking => ImportPhase::Checking,
            Phase::Converting => ImportPhase::Converting,
        };
        if self.is_fetching() && phase == ImportPhase::Checking {
            // What is told then is how much has come.
            return;
        }
        if convert.phase.replace(phase) != Some(phase) {
            self.meter = Default::default();
        }
        self.tell(bench.desk, phase, [progress.done, progress.total], [0, 0]);
    }

    /// The output is whole: which model is it, and is it here already?
    fn end_convert<E: Engine<File = D>>(
        &mut self,
        mut convert: Box<Convert<D>>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let header = convert.converter.header().cloned();
        let sink = std::mem::replace(&mut convert.sink, Sink::Nowhere);
        let (Some(header), Sink::Open { name, import }) = (header, sink) else {
            return Err(StoreError::Incomplete { want: 0, got: 0 }.into());
        };
        let finished = import.finish().map_err(End::from);
        let finished = finished.and_then(|layer| {
            bench.check_stays(layer.id.root)?;
            Ok(layer)
        });
        let layer = match finished {
            Ok(layer) => layer,
            Err(error) => {
                let bytes = Vec::new();
                convert.sink = Sink::Opening { name, bytes };
                self.stage = Stage::Convert(convert);
                return Err(error);
            }
        };
        let id = layer.id;
        self.root = Some(id.root);
        if let Some(here) = bench.shelf.complete(id) {
            let outcome = Outcome::Imported {
                model: here.clone(),
                already_here: true,
            };
            let mut names = self.close_remotes(bench);
            names.push(name);
            return Ok(self.close(Closing::remove(names, outcome), bench));
        }
        self.waits_for_files = true;
        bench
            .desk
            .open_or_create(self.owner(), names::pieces(id.root));
        convert.sink = Sink::Layer {
            name,
            layer: Box::new(layer),
            header: Box::new(header),
        };
        Ok(Stage::Convert(convert))
    }

    fn on_converted_layer<E: Engine<File = D>>(
        &mut self,
        mut convert: Box<Convert<D>>,
        answer: Result<FileAnswer<D>, StoreError>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let Sink::Layer {
            name,
            layer,
            header,
        } = &convert.sink
        else {
            return Ok(Stage::Convert(convert));
        };
        let kept = answer.and_then(|answer| match answer {
            FileAnswer::Opened(disk) => keep_layer(disk, layer),
            _ => Ok(()),
        });
        if let Err(error) = kept {
            self.stage = Stage::Convert(convert);
            return Err(error.into());
        }
        let id: ModelId = layer.id;
        let outcome = Outcome::Imported {
            model: summary(id, header, None),
            already_here: false,
        };
        let from = name.clone();
        let mut ops = vec![FileOp::Rename {
            from,
            to: names::done(id.root),
        }];
        ops.extend(self.close_remotes(bench).into_iter().map(FileOp::Remove));
        convert.sink = Sink::Nowhere;
        Ok(self.close(Closing::new(ops, outcome), bench))
    }
}

/// The descriptions are read: does such a model fit? The length of the output, the first time.
fn judge<D: Disk, E: Engine<File = D>>(
    convert: &mut Convert<D>,
    bench: &mut Bench<'_, E>,
) -> Result<Option<u64>, End> {
    if convert.is_judged {
        return Ok(None);
    }
    let Some(draft) = convert.converter.draft() else {
        return Ok(None);
    };
    sound_header(&draft.to_bytes(), draft.file_len, None, bench)?;
    convert.is_judged = true;
    Ok(Some(draft.file_len))
}

fn take_bytes<D: Disk>(convert: &mut Convert<D>, at: u64, bytes: &[u8]) -> Result<(), End> {
    let Some(need) = convert.asked.take_if(|need| need.at == at) else {
        return Ok(());
    };
    if bytes.len() != need.len as usize {
        let (expected, found) = (u64::from(need.len), bytes.len() as u64);
        return Err(SourceFault::Short { expected, found }.into());
    }
    let fed = convert.converter.feed(at, bytes);
    fed.map_err(|error| words::convert_error(&error).into())
}

/// The output's file is open: reserve the room and write what was held back.
fn take_file<D: Disk>(
    convert: &mut Convert<D>,
    answer: Result<FileAnswer<D>, StoreError>,
) -> Result<(), End> {
    let FileAnswer::Opened(disk) = answer? else {
        return Ok(());
    };
    let length = convert
        .converter
        .header()
        .map_or(0, |header| header.file_len);
    if let Sink::Opening { name, bytes } = &convert.sink {
        let mut import = SequentialImport::start(disk, length)?;
        import.append(bytes)?;
        let name = name.clone();
        let import = Box::new(import);
        convert.sink = Sink::Open { name, import };
    }
    Ok(())
}
