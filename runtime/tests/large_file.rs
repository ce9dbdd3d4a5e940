//! A model of 5 GB whose layers lie beyond 4 GiB: every offset is 64 bits wide from the header to
//! the read, and a lane whose addresses are 32 bits wide plans, refuses or pages it.

#![allow(clippy::unwrap_used)]

mod models;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use format::{Header, Layout, Manifest};
use models::{INT8, greedy};
use protocol::abi::{REGION_WEIGHTS, STEP_DONE};
use protocol::{Residency, Stage, TrResult};
use runtime::tiny::Recipe;
use runtime::{Engine, Model, Options, RuntimeError, Source, Surroundings, admit, measure};

const GIB: u64 = 1 << 30;
/// What a lane's addresses reach.
const LANE_BYTES: u64 = 4 * GIB - 65_536;

/// The tiny model with an embedding of a million rows of 5,120 bytes: the layers come after it.
fn header() -> Header {
    let (tiny, _) = Recipe::QUANTIZED.file().unwrap();
    let mut manifest: Manifest = tiny.manifest;
    let architecture = &mut manifest.architecture;
    architecture.vocab = 1 << 20;
    architecture.hidden = 1280;
    architecture.tied_head = true;
    manifest.tensors.clear();
    for spec in manifest.architecture.tensors() {
        let layout = match spec.name.as_str() {
            "embed" => Layout::F32,
            _ if spec.role == format::TensorRole::Vector => Layout::F32,
            _ => Layout::Q8_0R4,
        };
        let shape = spec.shape;
        manifest
            .tensors
            .insert(spec.name, format::TensorEntry { shape, layout });
    }
    Header::layout(manifest).unwrap()
}

/// Removed when the test ends.
struct Sparse(File, PathBuf);

impl Drop for Sparse {
    fn drop(&mut self) {
        std::fs::remove_file(&self.1).unwrap();
    }
}

/// Zeros but for what the last layer's projection and the norms have: a hole takes no room.
fn file(header: &Header) -> Sparse {
    let name = format!("sparse-{}.slm", std::process::id());
    let path = std::env::temp_dir().join(name);
    let options = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path);
    let file = Sparse(options.unwrap(), path);
    file.0.set_len(header.file_len).unwrap();
    file.0.write_all_at(&header.to_bytes(), 0).unwrap();
    for tensor in &header.tensors {
        let (start, len) = (
            tensor.range.start,
            (tensor.range.end - tensor.range.start) as usize,
        );
        if tensor.name.ends_with("norm") {
            let ones = 1f32.to_le_bytes().repeat(len / 4);
            file.0.write_all_at(&ones, start).unwrap();
        }
    }
    // Row 7 and row 9 of the embedding differ, so that their logits do.
    let embed = header.tensor("embed").unwrap().range.start;
    for (row, value) in [(7u64, 0.5f32), (9, 1.0), (1_000_000, -2.0)] {
        let floats = value.to_le_bytes().repeat(1280);
        file.0.write_all_at(&floats, embed + row * 5120).unwrap();
    }
    file
}

impl Source for &Sparse {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
        let read = self.0.read_exact_at(into, at);
        read.map_err(|_| RuntimeError::new(TrResult::HostRead, Stage::Load))
    }
}

#[test]
fn five_gigabytes_are_refused_whole_and_computed_by_pages() {
    let header = header();
    assert!(header.file_len > 5 * GIB, "{}", header.file_len);
    let layer = header.tensor("layers.1.down").unwrap();
    assert!(layer.range.start > 4 * GIB);
    let around = Surroundings::native(1);
    let planned = |residency| {
        let options = Options { residency, ..INT8 };
        measure(&header, &options, &around, LANE_BYTES).unwrap().0
    };
    for residency in [Residency::Full, Residency::Hybrid] {
        let error = admit(&planned(residency)).unwrap_err();
        assert_eq!(
            (error.code(), error.0.item),
            (TrResult::OutOfMemory, REGION_WEIGHTS)
        );
        assert!(
            error.0.found > 5 * GIB && error.0.expected < 4 * GIB,
            "{error}"
        );
    }
    let plan = planned(Residency::Paged);
    admit(&plan).unwrap();
    assert!(plan.total < GIB / 8 && plan.streamed > 5 * GIB, "{plan:?}");

    let sparse = file(&header);
    let options = Options {
        residency: Residency::Paged,
        context: 8,
        ..INT8
    };
    let mut model = Model::open_with(header, options, LANE_BYTES, Engine::default()).unwrap();
    let mut source = &sparse;
    // Loading and checking reads all of the 5 GB twice, which only a lane that is paid for does.
    let pieces = model.first()..model.header().file_len;
    for at in pieces.clone().step_by(format::PIECE_BYTES as usize) {
        let len = (pieces.end - at).min(u64::from(format::PIECE_BYTES)) as u32;
        model.load(&mut source, at, len).unwrap();
    }
    model.ready_from(&mut source).unwrap();
    model.begin(greedy(&model, &[9], 1)).unwrap();
    let last = loop {
        let step = model.step_from(&mut source).unwrap();
        if step.status == STEP_DONE {
            break step;
        }
    };
    // All projections are zero, so the residual stream is the embedding's row of ones: its norm is
    // itself, and the logit of a row is the sum of the row.
    let logits = model.logits();
    let close = |row: usize, wanted: f32| (logits[row] - wanted).abs() < 0.1;
    assert!(close(7, 640.0) && close(9, 1280.0) && close(1_000_000, -2560.0));
    assert_eq!(last.token, 9);
}
