//! A `.slm` file opened for the native engine.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use format::{Hasher, Header, Kind, PIECE_BYTES, PieceLayer, TOKENIZER_TENSOR};
use prompt::Prompter;
use protocol::{Stage, TrResult};
use runtime::sampler::{Malformed, Settings};
use runtime::{
    Engine, Kernels, KvFormat, Mode, Model, Options, Reader, Request, Residency, RuntimeError,
    Step, Stopper, Team,
};

use crate::args;
use crate::failure::Failure;
use crate::words::refuse;

/// What a model is opened with when the call does not say: more positions cost memory.
pub const CONTEXT_DEFAULT_MAX: u32 = 8192;

pub struct Opened {
    /// Absent for models of kind `bare`.
    pub prompter: Option<Prompter>,
    pub model: Model,
    /// Where weights that are not in memory come from.
    pub source: FileSource,
    /// Name of the kernels that run.
    pub kernels: &'static str,
    /// Ends a numbered request from another thread.
    pub stopper: Stopper,
}

/// The engine reads the file through this.
pub struct FileSource(File);

impl runtime::Source for FileSource {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
        let read = self
            .0
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.0.read_exact(into));
        read.map_err(|_| RuntimeError::new(TrResult::HostRead, Stage::Load))
    }
}

/// What the engine is asked for.
pub fn options(engine: &args::Engine, header: &Header) -> Options {
    let most = header.manifest.architecture.context;
    Options {
        mode: match engine.mode {
            args::Mode::StrictF32V1 => Mode::StrictF32V1,
            args::Mode::Int8V1 => Mode::Int8V1,
        },
        kv_format: match (engine.kv, engine.mode) {
            (Some(args::Kv::F32), _) | (None, args::Mode::StrictF32V1) => KvFormat::F32,
            (Some(args::Kv::F16), _) | (None, args::Mode::Int8V1) => KvFormat::F16,
            (Some(args::Kv::Int8), _) => KvFormat::Int8,
        },
        context: engine.context.unwrap_or(most.min(CONTEXT_DEFAULT_MAX)),
        prefill_tile: engine.prefill_tile.unwrap_or(0),
        residency: match engine.residency {
            args::Held::Full => Residency::Full,
            args::Held::Hybrid => Residency::Hybrid,
            args::Held::Paged => Residency::Paged,
        },
        kept_layers: 0,
    }
}

/// Bytes that the model may take.
pub fn limit(engine: &args::Engine) -> u64 {
    let bytes = engine
        .memory_limit
        .map(|megabytes| (megabytes * 1e6) as u64);
    bytes.unwrap_or(u64::MAX)
}

impl Opened {
    /// One bounded unit of work.
    pub fn step(&mut self) -> Result<Step, RuntimeError> {
        self.model.step_from(&mut self.source)
    }

    pub fn open(path: &Path, engine: &args::Engine) -> Result<Opened, Failure> {
        let header = read_header(path)?;
        let prompter = open_prompter(path, &header)?;
        let tensors = header.tensors.clone();
        let options = options(engine, &header);
        let limit = limit(engine);
        let kernels = match engine.kernels {
            args::Lane::Best => Kernels::best(),
            args::Lane::Scalar => Kernels::SCALAR,
        };
        let refused = |error: RuntimeError| refuse(&tensors, error);
        let team = match engine.threads {
            1 => Team::solo(),
            threads => Team::threads(usize::from(threads)).map_err(refused)?,
        };
        let file_len = header.file_len;
        let stopper = team.stopper();
        let open = || File::open(path).map_err(|error| Failure::file(path, &error));
        let mut source = FileSource(open()?);
        let reader = match options.residency {
            Residency::Full => None,
            Residency::Hybrid | Residency::Paged => Reader::start(FileSource(open()?)),
        };
        let engine = Engine {
            kernels,
            team,
            reader: reader.map(|reader| Box::new(reader) as _),
        };
        let mut model = Model::open_with(header, options, limit, engine).map_err(refused)?;
        let mut at = model.first();
        while at < file_len {
            let len = (file_len - at).min(u64::from(PIECE_BYTES)) as u32;
            model.load(&mut source, at, len).map_err(refused)?;
            at += u64::from(len);
        }
        model.ready_from(&mut source).map_err(refused)?;
        Ok(Opened {
            prompter,
            model,
            source,
            kernels: kernels.name(),
            stopper,
        })
    }

    /// Always the most likely of the tokenizer's ids.
    pub fn greedy<'a>(&self, ids: &'a [u32], max_new: u32) -> Request<'a> {
        let sampling = Settings {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            seed: 0,
            stream: 0,
            vocab: self.vocab(),
            malformed: Malformed::Refuse,
        };
        Request {
            ids,
            max_new,
            sampling,
            ignore_eos: false,
            digest: false,
            cold: false,
            argmax: false,
            number: 0,
        }
    }

    pub fn prompter(&self) -> Result<&Prompter, Failure> {
        self.prompter
            .as_ref()
            .ok_or_else(|| refuse_prompt(prompt::PromptError::NoTokenizer))
    }

    /// Ids at or above this are never chosen.
    fn vocab(&self) -> u32 {
        match &self.prompter {
            Some(prompter) => prompter.vocab(),
            None => self.model.header().manifest.architecture.vocab,
        }
    }
}

pub fn read_header(path: &Path) -> Result<Header, Failure> {
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let refused = |error: format::FormatError| {
        Failure::refused(
            format!("{}: {error}", path.display()),
            "Convert the model again, or fetch the file again.",
        )
    };
    let mut file = File::open(path).map_err(failed)?;
    let file_len = file.metadata().map_err(failed)?.len();
    let mut first = [0; 8];
    if file_len >= 8 {
        file.read_exact(&mut first).map_err(failed)?;
    }
    let len = format::header_len(first, file_len).map_err(refused)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes).map_err(failed)?;
    Header::parse(&bytes, file_len).map_err(refused)
}

/// The tokenizer payload is read, its hash compared, and turned into a prompter.
pub fn open_prompter(path: &Path, header: &Header) -> Result<Option<Prompter>, Failure> {
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let (Kind::Model, Some(reference)) = (header.manifest.kind, &header.manifest.tokenizer) else {
        return Ok(None);
    };
    let Some(tensor) = header.tensor(TOKENIZER_TENSOR) else {
        return Ok(None);
    };
    let mut file = File::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(tensor.range.start))
        .map_err(failed)?;
    let mut payload = Vec::new();
    file.take(tensor.range.end - tensor.range.start)
        .read_to_end(&mut payload)
        .map_err(failed)?;
    let found = format::sha256(&payload);
    if found != reference.sha256 {
        let what = format!(
            "the tokenizer's SHA-256 is {found}, expected {}",
            reference.sha256
        );
        return Err(Failure::refused(
            what,
            "The file is damaged; fetch or convert it again.",
        ));
    }
    Prompter::open(&header.manifest, &payload)
        .map(Some)
        .map_err(refuse_prompt)
}

/// Identity of the file's bytes.
pub fn hash_file(path: &Path) -> Result<PieceLayer, Failure> {
    let failed = |error: std::io::Error| Failure::file(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; PIECE_BYTES as usize];
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(hasher.finish()),
            len => hasher.update(&buffer[..len]),
        }
    }
}

pub fn refuse_prompt(error: prompt::PromptError) -> Failure {
    Failure::refused(&error, error.remedy())
}
