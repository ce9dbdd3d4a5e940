//! Pages of the cache, through staging memory of the lane.

use protocol::Stage;
use protocol::TrResult;
use protocol::abi::{Known, Span};

use super::{EngineError, ModuleEngine, ReadIntoView};

/// Token ids as a lane reads them.
pub fn id_bytes(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_le_bytes()).collect()
}

impl<F: ReadIntoView + 'static> ModuleEngine<F> {
    pub(super) fn known_ids(&self, ids: &[u32]) -> Result<Known, EngineError> {
        let (handle, out) = (self.handle(Stage::Prefill)?, self.out());
        self.staged(&id_bytes(ids), Stage::Prefill, |ptr| {
            let code = self.exports.rt_known(handle, ptr, ids.len() as u32, out);
            self.check(code, Stage::Prefill)?;
            Ok(Known::from_bytes(&self.read(out)))
        })
    }

    pub(super) fn copy_page(&self, ids: &[u32], block: u32) -> Result<Vec<u8>, EngineError> {
        let len = self.known_ids(ids)?.page_bytes;
        let (handle, out) = (self.handle(Stage::Prefill)?, self.out());
        let to = self.trap(self.exports.rt_alloc(len), Stage::Prefill)?;
        if to == 0 {
            return Err(EngineError::new(TrResult::OutOfMemory, Stage::Prefill));
        }
        let copied = self.staged(&id_bytes(ids), Stage::Prefill, |ptr| {
            let ids_len = ids.len() as u32;
            let called = self
                .exports
                .rt_page_out(handle, ptr, ids_len, block, to, len, out);
            self.check(called, Stage::Prefill)?;
            let span = Span::from_bytes(&self.read(out));
            Ok(self.view(span.ptr, span.len).to_vec())
        });
        self.trap(self.exports.rt_free(to, len), Stage::Prefill)?;
        copied
    }

    pub(super) fn restore_page(
        &self,
        ids: &[u32],
        block: u32,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        let handle = self.handle(Stage::Prefill)?;
        self.staged(&id_bytes(ids), Stage::Prefill, |ids_at| {
            self.staged(bytes, Stage::Prefill, |from| {
                let (ids_len, len) = (ids.len() as u32, bytes.len() as u32);
                let called = self
                    .exports
                    .rt_page_in(handle, ids_at, ids_len, block, from, len);
                self.check(called, Stage::Prefill)
            })
        })
    }
}
