//! Where a shared model's bytes lie: a finished file, or one that arrives.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use format::{ModelId, PieceIndex, PieceLayer, VerifiedPiece};
use p2p::Message;
use store::{Catalog, FolderCatalog, FolderDisk, Found, Import, StoreError, names};

use crate::failure::Failure;

/// A finished file that is given to others.
pub struct Finished {
    file: File,
    id: ModelId,
    /// Gives a wrong byte in every message of leaves, to see what others do.
    lies: bool,
}

/// A file that arrives: `<root>.part` with its record beside the place where it will be.
pub struct Arriving {
    id: ModelId,
    folder: FolderCatalog,
    to: PathBuf,
    import: Option<Import<FolderDisk>>,
    /// An earlier start left something.
    is_old: bool,
}

impl Finished {
    pub fn open(path: &Path, id: ModelId, lies: bool) -> Result<Finished, Failure> {
        let file = File::open(path).map_err(|error| Failure::file(path, &error))?;
        Ok(Finished { file, id, lies })
    }

    /// A piece as it lies there; the swarm looks whether it is still the model's.
    pub fn read(&mut self, piece: PieceIndex) -> Option<Vec<u8>> {
        read_piece(&mut self.file, self.id, piece)
    }

    /// What goes out instead of a message.
    pub fn twist(&self, bytes: &mut [u8]) {
        let is_leaves = matches!(Message::decode(bytes), Ok(Message::Leaves { .. }));
        if let Some(last) = bytes.last_mut().filter(|_| self.lies && is_leaves) {
            *last ^= 1;
        }
    }
}

impl Arriving {
    pub fn new(id: ModelId, to: &Path) -> Result<Arriving, Failure> {
        refuse_existing(to)?;
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        if !parent.is_dir() {
            let what = format!("there is no folder {}", parent.display());
            return Err(Failure::Usage(what));
        }
        let folder = FolderCatalog::new(parent).map_err(disk)?;
        Ok(Arriving {
            id,
            is_old: folder.path().join(names::part(id.root)).exists(),
            folder,
            to: to.to_owned(),
            import: None,
        })
    }

    /// The hashes of an earlier start.
    pub fn known_layer(&self) -> Option<PieceLayer> {
        let bytes = std::fs::read(self.path(&names::pieces(self.id.root))).ok()?;
        PieceLayer::parse(self.id, &bytes).ok()
    }

    /// Now it is known what each piece must be: gives those that are here from an earlier start.
    pub fn begin(&mut self, now_ms: u64, layer: &PieceLayer) -> Result<Vec<PieceIndex>, Failure> {
        if self.import.is_some() {
            return Ok(Vec::new());
        }
        let pieces = self.path(&names::pieces(self.id.root));
        std::fs::write(&pieces, layer.to_bytes()).map_err(|e| Failure::file(&pieces, &e))?;
        let part = self.open_or_create(&names::part(self.id.root))?;
        let have = self.open_or_create(&names::have(self.id.root))?;
        let mut import = Import::start(layer.clone(), part, have).map_err(disk)?;
        // The folder is everybody's, and nobody hashes the file again before it is used.
        import.recheck_recorded().map_err(disk)?;
        if import.resumed().found == Found::PartOnly {
            for piece in (0..self.id.pieces()).map(PieceIndex) {
                import.recheck(now_ms, piece).map_err(disk)?;
            }
        }
        let here = (0..self.id.pieces()).map(PieceIndex);
        let here = here
            .filter(|piece| import.have().contains(*piece))
            .collect();
        self.import = Some(import);
        Ok(here)
    }

    pub fn store(&mut self, now_ms: u64, whole: &VerifiedPiece) -> Result<(), Failure> {
        match &mut self.import {
            Some(import) => import.feed_whole(now_ms, whole).map(drop).map_err(disk),
            None => Err(Failure::Machine("a piece came before its hash".into())),
        }
    }

    /// Writes down what is here if that is due.
    pub fn tick(&mut self, now_ms: u64) -> Result<(), Failure> {
        self.import
            .as_mut()
            .map_or(Ok(()), |import| import.tick(now_ms).map_err(disk))
    }

    /// A piece that was stored; it was verified when it came.
    pub fn read(&self, piece: PieceIndex) -> Option<Vec<u8>> {
        let import = self.import.as_ref()?;
        if !import.have().contains(piece) {
            return None;
        }
        let mut file = File::open(self.path(&names::part(self.id.root))).ok()?;
        read_piece(&mut file, self.id, piece)
    }

    pub fn bytes(&self) -> u64 {
        self.import
            .as_ref()
            .map_or(0, |import| import.progress().bytes)
    }

    /// Gives the complete file its name.
    pub fn finish(mut self, now_ms: u64) -> Result<(), Failure> {
        let Some(import) = self.import.take() else {
            return Err(Failure::Machine("nothing has come".into()));
        };
        import.finish(now_ms).map_err(disk)?;
        let part = self.path(&names::part(self.id.root));
        refuse_existing(&self.to)?;
        std::fs::rename(&part, &self.to).map_err(|error| Failure::file(&self.to, &error))?;
        for name in [names::have(self.id.root), names::pieces(self.id.root)] {
            self.remove(&name)?;
        }
        Ok(())
    }

    /// Writes down what is here, for a later start; if that is nothing, nothing stays.
    pub fn suspend(mut self, now_ms: u64) -> Result<(), Failure> {
        if self.bytes() == 0 {
            return self.discard(now_ms);
        }
        match self.import.take() {
            Some(import) => import.suspend(now_ms).map(drop).map_err(disk),
            None => Ok(()),
        }
    }

    /// Removes what this start brought; what an earlier one left stays.
    pub fn discard(mut self, now_ms: u64) -> Result<(), Failure> {
        let Some(import) = self.import.take() else {
            return Ok(());
        };
        import.suspend(now_ms).map_err(disk)?;
        if !self.is_old {
            let root = self.id.root;
            for name in [names::part(root), names::have(root), names::pieces(root)] {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), Failure> {
        let path = self.path(name);
        std::fs::remove_file(&path).map_err(|error| Failure::file(&path, &error))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open_or_create(&self, name: &str) -> Result<FolderDisk, Failure> {
        match self.folder.create(name) {
            Err(StoreError::Exists { .. }) => self.folder.open(name).map_err(disk),
            made => made.map_err(disk),
        }
    }
}

fn read_piece(file: &mut File, id: ModelId, piece: PieceIndex) -> Option<Vec<u8>> {
    let (at, len) = id.piece_range(piece);
    let mut bytes = vec![0; len as usize];
    file.seek(SeekFrom::Start(at)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// Nothing is written over.
fn refuse_existing(path: &Path) -> Result<(), Failure> {
    match path.exists() {
        true => Err(Failure::Usage(format!(
            "{} is there already",
            path.display()
        ))),
        false => Ok(()),
    }
}

fn disk(error: StoreError) -> Failure {
    match error {
        StoreError::Busy { name } => Failure::Machine(format!(
            "another program is fetching this model here and has {name} open"
        )),
        error => Failure::Machine(error.to_string()),
    }
}
