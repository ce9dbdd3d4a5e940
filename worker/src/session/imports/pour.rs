//! A file whose server does not say how long it is: kept as it comes, and judged at its end.
//!
//! Its first bytes must be those of a model, for nothing else is worth the room. No room can be
//! asked for before it is taken, so only a full disk ends it.

use protocol::{Stage as Place, TrResult};
use store::Disk;

use super::gather::{Files, Then};
use super::job::{Bench, End, Job, Stage};
use crate::engine::Engine;
use crate::words;

impl<D: Disk> Job<D> {
    pub(super) fn pour<E: Engine<File = D>>(
        &mut self,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let Some(remote) = self.remotes.first_mut() else {
            return Ok(Stage::Probe);
        };
        if remote.raw.is_some() {
            remote.want_more(bench.desk);
            return Ok(Stage::Probe);
        }
        let first = remote.first()?;
        let is_model = first.starts_with(b"GGUF") || first.get(4..9) == Some(b"\0\0\0\0{");
        if !is_model {
            let what = "what the server sends is neither a .slm nor a GGUF file";
            let remedy = "check the address";
            let error = words::report(TrResult::Source, Place::Import, what, remedy);
            return Err(super::check::page_or(&first, error));
        }
        self.next_file(Files::new(Then::Pour), bench)
    }
}
