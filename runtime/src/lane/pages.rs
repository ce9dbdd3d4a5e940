//! Pages of the cache on their way to the host and back.

use protocol::Stage;
use protocol::abi::{Known, Span};

use super::Lane;
use crate::RuntimeError;
use crate::staging::Address;

/// Where something lies in staging memory, and how long it is.
type At = (Address, u32);

impl Lane {
    pub fn known(&mut self, handle: u64, ids: At, out: Address) -> Result<(), RuntimeError> {
        self.check_room(out, Known::BYTES, Stage::Prefill)?;
        let ids = self.ids(ids)?;
        let model = &mut self.handles.get(handle)?.model;
        let known = Known {
            tokens: model.known(&ids)? as u32,
            page_bytes: model.page_bytes()? as u32,
        };
        self.answer(out, &known.to_bytes(), Stage::Prefill)
    }

    pub fn page_out(
        &mut self,
        handle: u64,
        ids: At,
        block: u32,
        (to, to_len): At,
        out: Address,
    ) -> Result<(), RuntimeError> {
        self.check_room(out, Span::BYTES, Stage::Prefill)?;
        self.check_room(to, to_len as usize, Stage::Prefill)?;
        let ids = self.ids(ids)?;
        let model = &mut self.handles.get(handle)?.model;
        // Straight to where the host reads it: a page may be all that the window has room for.
        let page = self.staging.place(to, to_len as usize);
        let page = page.map_err(|code| RuntimeError::new(code, Stage::Prefill))?;
        let len = model.copy_page(&ids, block as usize, page)?;
        let span = Span {
            ptr: to,
            len: len as u32,
        };
        self.answer(out, &span.to_bytes(), Stage::Prefill)
    }

    pub fn page_in(
        &mut self,
        handle: u64,
        ids: At,
        block: u32,
        (from, from_len): At,
    ) -> Result<(), RuntimeError> {
        let ids = self.ids(ids)?;
        let bytes = self.staging.read(from, from_len as usize);
        let bytes = bytes.map_err(|code| RuntimeError::new(code, Stage::Prefill))?;
        let model = &mut self.handles.get(handle)?.model;
        model.restore_page(&ids, block as usize, bytes)
    }
}
