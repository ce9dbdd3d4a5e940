//! Loading and measuring in few words.

use format::{Digest, ModelId, PIECE_BYTES};
use protocol::{
    Command, ErrorReport, Event, ImportId, ImportSource, Measure, Mode, RequestId, Subject,
    TrResult,
};
use worker::Input;

use super::World;
use super::models::Stored;

impl World {
    /// A started session that has this model.
    pub fn with(model: &Stored) -> World {
        let mut world = World::new();
        world.import_file("a.slm", model.file.clone());
        world
    }

    /// A started session with this model in the engine.
    pub fn loaded(model: &Stored) -> World {
        let mut world = World::with(model);
        world.load(model.id());
        let last = world.events.last();
        assert!(matches!(last, Some(Event::Loaded { .. })), "{last:?}");
        world
    }

    pub fn load(&mut self, model: ModelId) {
        let context = 0;
        self.command(Command::Load { model, context });
        self.run();
    }

    /// Asks for a measurement of 30 prompt tokens; does not run.
    pub fn measure(&mut self, mode: Mode, prefill_tile: u32, max_new: u32) -> RequestId {
        let request = self.next_request();
        let measure = Measure {
            prompt_ids: (3..33).collect(),
            max_new,
            prefill_tile,
            mode,
            reuses: false,
        };
        self.command(Command::Measure { request, measure });
        request
    }

    /// Digest and ids of the measurement that has just ended.
    pub fn measured(&self) -> (Digest, Vec<u32>) {
        match self.events.last() {
            Some(Event::Measured {
                logits_sha256, ids, ..
            }) => (*logits_sha256, ids.clone()),
            other => panic!("{other:?}"),
        }
    }

    /// The newest failure of a subject, which is one of legality.
    pub fn illegal(&self, subject: Subject) -> &ErrorReport {
        let error = self.failure(subject);
        assert_eq!(error.code, TrResult::IllegalState, "{error:?}");
        error
    }

    /// Drops a file on the page; does not run.
    pub fn drop_file(&mut self, name: &str, bytes: Vec<u8>) -> ImportId {
        let (name, length) = (name.to_owned(), bytes.len() as u64);
        self.hand_file(ImportSource::File { name, length }, bytes)
    }

    /// A file that is to be used and not kept; does not run.
    pub fn lend_file(&mut self, name: &str, bytes: Vec<u8>) -> ImportId {
        let (name, length) = (name.to_owned(), bytes.len() as u64);
        self.hand_file(ImportSource::Borrowed { name, length }, bytes)
    }

    fn hand_file(&mut self, source: ImportSource, bytes: Vec<u8>) -> ImportId {
        self.imports += 1;
        let import = ImportId(self.imports);
        self.attached += 1;
        self.files.insert(self.attached, bytes);
        self.give(Input::Command {
            command: Command::Import { import, source },
            attached: Some(self.attached),
        });
        import
    }

    /// Everything of this address was asked for, each piece once.
    pub fn asked_once(&self, url: &str, length: usize) {
        let asked = self.pieces_asked(url);
        assert_eq!(asked.len(), length.div_ceil(PIECE_BYTES as usize));
        assert!(asked.values().all(|times| *times == 1), "{asked:?}");
    }

    /// A bit of a file flips while nobody looks.
    pub fn change_file(&mut self, number: u32, at: usize) {
        let file = self.files.get_mut(&number).expect("a file");
        file[at] ^= 1;
    }

    /// Files of people that the session still needs.
    pub fn files_held(&self) -> usize {
        self.files.len()
    }

    /// The newest failure of a subject.
    pub fn failure(&self, subject: Subject) -> &ErrorReport {
        let mut failures = self.events.iter().rev();
        let found = failures.find_map(|event| match event {
            Event::Failed { subject: of, error } if *of == subject => Some(error),
            _ => None,
        });
        found.expect("it has failed")
    }
}
