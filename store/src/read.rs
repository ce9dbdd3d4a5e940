//! How a complete model is read back.

use format::{Hasher, ModelId, PIECE_BYTES, PieceIndex, PieceLayer, Root};

use crate::import::verify;
use crate::{Corruption, Disk, StoreError};

/// A stored model: its file and the piece layer that says what must be in it.
pub struct ChunkStore<D> {
    layer: PieceLayer,
    disk: D,
}

impl<D: Disk> ChunkStore<D> {
    /// Refuses a file of another length than the model's; its bytes are checked when read.
    pub fn open(layer: PieceLayer, disk: D) -> Result<ChunkStore<D>, StoreError> {
        let (want, got) = (layer.id.length, disk.len()?);
        if want != got {
            let what = Corruption::Length { want, got };
            return Err(StoreError::Corrupt { id: layer.id, what });
        }
        Ok(ChunkStore { layer, disk })
    }

    pub fn id(&self) -> ModelId {
        self.layer.id
    }

    pub fn layer(&self) -> &PieceLayer {
        &self.layer
    }

    /// The file itself, for readers that hash in place.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// Reads one piece into the start of `into` and verifies it; returns its length in bytes.
    /// `into` must hold a whole piece: 1 MiB always suffices. After an error its content is void.
    pub fn read_piece(&self, piece: PieceIndex, into: &mut [u8]) -> Result<u32, StoreError> {
        let (at, len) = self.layer.id.piece_range(piece);
        let got = into.len() as u64;
        let Some(into) = into.get_mut(..len as usize) else {
            let want = u64::from(len);
            return Err(StoreError::PieceLength { piece, want, got });
        };
        if piece.0 < self.layer.id.pieces() {
            self.disk.read_at(at, into)?;
        }
        verify(&self.layer, piece, into)?;
        Ok(len)
    }

    /// Reads any bytes, unverified.
    pub fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.disk.read_at(at, into)
    }

    pub fn close(mut self) -> Result<(), StoreError> {
        self.disk.close()
    }
}

/// Makes the piece layer of a stored model again when `<root>.pieces` is lost or damaged; reads
/// the whole file, one piece a step.
pub struct LayerRebuild {
    id: ModelId,
    at: u64,
    hasher: Hasher,
}

impl LayerRebuild {
    /// `root` is what the file's name says.
    pub fn start<D: Disk>(root: Root, disk: &D) -> Result<LayerRebuild, StoreError> {
        let length = disk.len()?;
        Ok(LayerRebuild {
            id: ModelId { root, length },
            at: 0,
            hasher: Hasher::default(),
        })
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.at
    }

    /// `None` while there is more to read. [`StoreError::Corrupt`] if the file is not the model.
    pub fn step<D: Disk>(&mut self, disk: &D) -> Result<Option<PieceLayer>, StoreError> {
        let len = (self.id.length - self.at).min(u64::from(PIECE_BYTES));
        if len > 0 {
            let mut bytes = vec![0; len as usize];
            disk.read_at(self.at, &mut bytes)?;
            self.hasher.update(&bytes);
            self.at += len;
            return Ok(None);
        }
        let layer = std::mem::take(&mut self.hasher).finish();
        if layer.id == self.id {
            return Ok(Some(layer));
        }
        let what = Corruption::Root {
            want: self.id.root.0,
            got: layer.id.root.0,
        };
        Err(StoreError::Corrupt { id: self.id, what })
    }
}
