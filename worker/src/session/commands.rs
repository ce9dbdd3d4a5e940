//! What a command may do in which state.

use protocol::{
    CATALOGUE_SCHEMA, CapabilityReceipt, Catalogue, Command, Diagnostics, Event, LaneReport, Mode,
    Stage, StorageKind, Subject, TrResult, abi,
};
use store::Disk;

use super::{COMMANDS_MAX, Session, Station};
use crate::engine::Engine;
use crate::source::{SourceFault, beginning};
use crate::words;

/// Address of the catalogue, relative to itself.
const CATALOGUE_URL: &str = "catalogue.json";
/// A catalogue of some two thousand models.
const CATALOGUE_BYTES_MAX: u32 = 1024 * 1024;

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    pub(super) fn on_command(&mut self, command: Command, attached: Option<u32>) {
        if let Station::Failed(error) = &self.station {
            let error = error.clone();
            return self.refuse(&command, error);
        }
        if !self.scan.is_done {
            if self.early.len() < COMMANDS_MAX {
                return self.early.push_back((command, attached));
            }
            let error = words::illegal(
                Stage::Start,
                "too many commands came before the worker was ready",
                "wait until the worker is ready",
            );
            return self.refuse(&command, error);
        }
        match command {
            Command::Catalogue => self.fetch_catalogue(),
            Command::ListModels => self.desk.event(Event::Models(self.shelf.list())),
            Command::Import { import, source } => self.on_import(import, source, attached),
            Command::CancelImport { import, discard } => self.cancel_import(import, discard),
            Command::DeleteModel { model } => self.on_delete(model.root),
            Command::Load { model, context } => self.on_load(model, context),
            Command::Unload => self.on_unload(),
            Command::Chat {
                request,
                messages,
                sampling,
            } => self.on_chat(request, messages, sampling),
            Command::Measure { request, measure } => self.on_measure(request, measure),
            Command::Time { request, measure } => self.on_time(request, measure),
            Command::Stop { request } => self.on_stop(request),
            Command::Diagnostics => self.on_diagnostics(),
            Command::ForgetFailures => {
                self.desk.forget_failures();
                self.desk.event(Event::FailuresForgotten);
            }
        }
    }

    fn refuse(&mut self, command: &Command, error: protocol::ErrorReport) {
        let subject = match command {
            Command::Catalogue => Subject::Catalogue,
            Command::Import { import, .. } | Command::CancelImport { import, .. } => {
                Subject::Import(*import)
            }
            Command::Load { model, .. } => Subject::Load(*model),
            Command::Chat { request, .. }
            | Command::Measure { request, .. }
            | Command::Time { request, .. }
            | Command::Stop { request } => Subject::Request(*request),
            Command::DeleteModel { .. } | Command::ListModels => Subject::Store,
            Command::Unload | Command::Diagnostics | Command::ForgetFailures => Subject::Start,
        };
        self.desk.fail(subject, error);
    }

    fn fetch_catalogue(&mut self) {
        // A second question while the first is under way gets the same answer.
        if self.catalogue.is_none() {
            let source = self.desk.address(CATALOGUE_URL, None);
            self.catalogue = Some(source);
            self.desk.need_whole(source, CATALOGUE_BYTES_MAX);
        }
    }

    pub(super) fn on_catalogue(&mut self, bytes: Result<Vec<u8>, SourceFault>) {
        if let Some(source) = self.catalogue.take() {
            self.desk.cancel_source(source);
        }
        let parsed = bytes.map_err(|fault| fault.report()).and_then(|bytes| {
            if store::looks_like_a_page(&bytes) {
                let first = beginning(&bytes);
                return Err(SourceFault::Page { first }.report());
            }
            let catalogue: Option<Catalogue> = serde_json::from_slice(&bytes).ok();
            catalogue
                .filter(|catalogue| catalogue.schema == CATALOGUE_SCHEMA)
                .ok_or_else(|| {
                    words::report(
                        TrResult::Source,
                        Stage::Import,
                        "the server's catalogue is not one of this version",
                        "reload the page, or tell whoever runs the server",
                    )
                })
        });
        match parsed {
            Ok(catalogue) => self.desk.event(Event::Catalogue(catalogue.models)),
            Err(error) => self.desk.fail(Subject::Catalogue, error),
        }
    }

    fn on_delete(&mut self, root: format::Root) {
        let reason = if self.seat.holds(root) {
            "the model is loaded"
        } else if self.imports.concern(root) {
            "the model is being imported"
        } else if self.removals.concern(root) {
            "the model is being deleted already"
        } else if self.shelf.get(root).is_none() {
            "there is no such model"
        } else {
            return self.remove_model(root);
        };
        let remedy = "unload the model or cancel its import first, or list the models again";
        let error = words::illegal(Stage::Store, reason, remedy);
        self.desk.fail(Subject::Store, error);
    }

    fn on_diagnostics(&mut self) {
        let (counters, receipt) = match &mut self.station {
            Station::Ready(start) => {
                let counters = start.engine.counters();
                let mut receipt = (*start.receipt).clone();
                receipt.observed.memory_bytes = start.engine.memory_bytes();
                (counters, receipt)
            }
            _ => Default::default(),
        };
        let Some((lane, storage)) = self.lane() else {
            return;
        };
        let diagnostics = Diagnostics {
            lane: lane.clone(),
            storage,
            scalar_calls: counters.scalar_calls,
            simd_calls: counters.simd_calls,
            relaxed_calls: counters.relaxed_calls,
            fit: self.seat.fit(),
            stored_bytes: self.shelf.stored_bytes(),
            records: self.desk.records.to_vec(),
            receipt: self.completed(receipt, &counters),
        };
        self.desk.event(Event::Diagnostics(Box::new(diagnostics)));
    }

    /// The receipt with what the engine says has run.
    fn completed(
        &self,
        mut receipt: CapabilityReceipt,
        counters: &abi::Counters,
    ) -> CapabilityReceipt {
        let mode = self.seat.model.as_ref().map(|model| model.mode);
        receipt.selection.numerical_mode = mode.and_then(|mode| match mode {
            abi::MODE_STRICT_F32_V1 => Some(Mode::StrictF32V1),
            abi::MODE_INT8_V1 => Some(Mode::Int8V1),
            _ => None,
        });
        let executed = &mut receipt.executed_path_evidence;
        executed.scalar_kernel_calls = counters.scalar_calls;
        executed.simd_kernel_calls = counters.simd_calls;
        executed.relaxed_kernel_calls = counters.relaxed_calls;
        receipt
    }

    /// The lane that is or was last in use.
    pub fn lane(&self) -> Option<(&LaneReport, StorageKind)> {
        match &self.station {
            Station::Ready(start) => Some((&start.lane, start.storage)),
            Station::Lost(lane, storage) => Some((lane, *storage)),
            Station::Starting | Station::Failed(_) => None,
        }
    }
}
