//! What a command may do in which state.

use format::ModelId;
use protocol::{
    CapabilityReceipt, Command, Diagnostics, Event, LaneReport, Mode, Stage, StorageKind, Subject,
    abi,
};
use store::Disk;

use super::{COMMANDS_MAX, Session, Station};
use crate::engine::Engine;
use crate::words;

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    pub(super) fn on_command(&mut self, command: Command, attached: Option<u32>) {
        if command == Command::Diagnostics {
            // They are asked for above all when nothing else works.
            return self.on_diagnostics();
        }
        if let Station::Failed(error) = &self.station {
            if command == Command::ForgetFailures {
                // It may be what lets the next start go well.
                return self.on_forget_failures();
            }
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
            Command::Catalogue { newest } => self.ask_for_offers(newest),
            Command::ListModels => self.desk.event(Event::Models(self.shelf.list())),
            Command::Import { import, source } => self.on_import(import, source, attached),
            Command::CancelImport { import, discard } => self.cancel_import(import, discard),
            Command::DeleteModel { model } => self.on_delete(model),
            Command::Check { model } => self.on_check(model),
            Command::Load { model, context } => self.on_load(model, context),
            Command::Unload => self.on_unload(),
            Command::Chat {
                request,
                messages,
                sampling,
                kept_as,
            } => self.on_chat(request, messages, sampling, kept_as),
            Command::Measure { request, measure } => self.on_measure(request, measure),
            Command::Time { request, measure } => self.on_time(request, measure),
            Command::Stop { request } => self.on_stop(request),
            Command::Export { model } => self.on_export(model),
            Command::ForgetFailures => self.on_forget_failures(),
            // Answered above.
            Command::Diagnostics => {}
            // Between tabs: a session that hears it has the work.
            Command::TakeOver => {
                let what = "this tab does the work already";
                let error = words::illegal(Stage::Start, what, "go on as before");
                self.desk.fail(Subject::Asked, error);
            }
            Command::Swarm(command) => self.on_swarm_command(command),
            Command::Prefer(wish) => self.wish = Some(wish),
            Command::ForgetKept { conversation } => self.forget_kept(conversation),
        }
    }

    fn on_forget_failures(&mut self) {
        self.desk.forget_failures();
        self.desk.event(Event::FailuresForgotten);
    }

    fn refuse(&mut self, command: &Command, error: protocol::ErrorReport) {
        self.desk.fail(command.subject(), error);
    }

    fn on_delete(&mut self, model: ModelId) {
        let root = model.root;
        self.give_up_check(root);
        self.unshare_root(root);
        let reason = if self.seat.holds(root) {
            "the model is loaded"
        } else if self.imports.concern(root) {
            "the model is being imported"
        } else if self.removals.concern(root) {
            "the model is being deleted already"
        } else if self.shelf.get(root).is_none_or(|found| found.id != model) {
            "there is no such model"
        } else {
            if let Some(lent) = self.shelf.lent(root) {
                // It is not ours to be removed.
                self.desk.cancel_source(lent.source);
                self.shelf.take(root);
                return self.desk.event(Event::Models(self.shelf.list()));
            }
            return self.remove_model(model);
        };
        let remedy = "unload the model or cancel its import first, or list the models again";
        let error = words::illegal(Stage::Store, reason, remedy);
        self.desk.fail(Subject::Model(model), error);
    }

    /// The shell hands out the file; its bytes do not come through here.
    fn on_export(&mut self, model: ModelId) {
        match self.shelf.complete(model) {
            Some(_) => self.desk.hand_out(model),
            None => {
                let what = "there is no such model, or it is not whole";
                let remedy = "list the models again; a damaged model has to be repaired first";
                let error = words::illegal(Stage::Store, what, remedy);
                self.desk.fail(Subject::Model(model), error);
            }
        }
    }

    fn on_diagnostics(&mut self) {
        let mut read_ahead = 0;
        let (counters, receipt) = match &mut self.station {
            Station::Ready(start) => {
                read_ahead = start.engine.read_ahead();
                let counters = start.engine.counters();
                let mut receipt = (*start.receipt).clone();
                receipt.observed.memory_bytes = start.engine.memory_bytes();
                (counters, receipt)
            }
            _ => Default::default(),
        };
        let known = self.lane();
        let (lane, storage) = known.map(|(lane, kind)| (lane.clone(), kind)).unzip();
        let diagnostics = Diagnostics {
            lane,
            storage,
            scalar_calls: counters.scalar_calls,
            simd_calls: counters.simd_calls,
            relaxed_calls: counters.relaxed_calls,
            fit: self.seat.fit(),
            read_ahead,
            stored_bytes: self.shelf.stored_bytes(),
            state: format!("{:?}", self.seat.state),
            now_ms: self.desk.now_ms,
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
        let mode = self.seat.model.as_ref().map(|model| model.options.mode);
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
