//! A model of 5 GB whose layers lie beyond 4 GiB: every offset is 64 bits wide from the header to
//! the read, and a lane whose addresses are 32 bits wide plans, refuses or pages it.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use format::{Header, Layout, Manifest, PIECE_BYTES};
use protocol::TrResult;
use protocol::abi::{
    KV_F16, MODE_INT8_V1, Opened, Options, Plan, REGION_WEIGHTS, RESIDENCY_FULL, RESIDENCY_HYBRID,
    RESIDENCY_PAGED, Request, STEP_DONE, Step,
};
use runtime::tiny::Recipe;
use runtime::{HeaderAt, Lane, RuntimeError};

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
    // Rows of the embedding that are not zero, the greatest of them beyond 4 GiB.
    let embed = header.tensor("embed").unwrap().range.start;
    for (row, value) in [(7u64, 0.5f32), (9, 1.0), (1_000_000, 2.0)] {
        let floats = value.to_le_bytes().repeat(1280);
        file.0.write_all_at(&floats, embed + row * 5120).unwrap();
    }
    file
}

/// A lane with the header in its staging memory.
struct Host {
    lane: Lane,
    header: HeaderAt,
    options: u32,
    request: u32,
    out: u32,
}

impl Host {
    fn new(header: &Header) -> Host {
        let mut lane = Lane::new(LANE_BYTES);
        let bytes = header.to_bytes();
        let address = lane.staging.alloc(bytes.len());
        lane.staging.write(address, &bytes).unwrap();
        Host {
            header: HeaderAt {
                address,
                len: bytes.len() as u32,
                file_len: header.file_len,
            },
            options: lane.staging.alloc(Options::BYTES),
            request: lane.staging.alloc(Request::BYTES + 4),
            out: lane.staging.alloc(Plan::BYTES),
            lane,
        }
    }

    fn ask(&mut self, residency: u32) {
        let options = Options {
            mode: MODE_INT8_V1,
            kv_format: KV_F16,
            context: 8,
            residency,
            ..Options::default()
        };
        let bytes = options.to_bytes();
        self.lane.staging.write(self.options, &bytes).unwrap();
    }

    fn plan(&mut self, residency: u32) -> Plan {
        self.ask(residency);
        self.lane.plan(self.header, self.options, self.out).unwrap();
        Plan::from_bytes(self.lane.staging.read_array(self.out).unwrap())
    }

    fn open(&mut self, residency: u32) -> Result<Opened, RuntimeError> {
        self.ask(residency);
        self.lane.open(self.header, self.options, 3, self.out)?;
        Ok(Opened::from_bytes(
            self.lane.staging.read_array(self.out).unwrap(),
        ))
    }
}

#[test]
fn five_gigabytes_are_refused_whole_and_computed_by_pages() {
    let header = header();
    assert!(header.file_len > 5 * GIB, "{}", header.file_len);
    let layer = header.tensor("layers.1.down").unwrap();
    assert!(layer.range.start > 4 * GIB);
    let mut host = Host::new(&header);
    for residency in [RESIDENCY_FULL, RESIDENCY_HYBRID] {
        assert!(host.plan(residency).weights > 5 * GIB);
        let error = host.open(residency).unwrap_err();
        assert_eq!(
            (error.code(), error.0.item),
            (TrResult::OutOfMemory, REGION_WEIGHTS)
        );
        assert!(
            error.0.found > 5 * GIB && error.0.expected < 4 * GIB,
            "{error}"
        );
    }
    let plan = host.plan(RESIDENCY_PAGED);
    assert!(plan.total < GIB / 8 && plan.streamed > 5 * GIB, "{plan:?}");

    let sparse = file(&header);
    let mut highest = 0;
    let mut read = |source: u32, at: u64, into: &mut [u8]| {
        assert_eq!(source, 3);
        highest = highest.max(at);
        match sparse.0.read_exact_at(into, at) {
            Ok(()) => 0,
            Err(_) => TrResult::HostRead as i32,
        }
    };
    let Opened { handle, first, len } = host.open(RESIDENCY_PAGED).unwrap();
    assert_eq!(first + len, header.file_len);
    // Pieces are loaded and then checked: all of the 5 GB twice.
    for at in (first..header.file_len).step_by(PIECE_BYTES as usize) {
        let len = (header.file_len - at).min(u64::from(PIECE_BYTES)) as u32;
        host.lane
            .load(handle, at, len, host.out, &mut read)
            .unwrap();
    }
    host.lane.ready(handle, &mut read).unwrap();
    let ids = host.request + Request::BYTES as u32;
    let request = Request {
        ids,
        ids_len: 1,
        max_new: 1,
        top_p: 1.0,
        repetition_penalty: 1.0,
        vocab: 1 << 20,
        ..Request::default()
    };
    host.lane.staging.write(ids, &9u32.to_le_bytes()).unwrap();
    host.lane
        .staging
        .write(host.request, &request.to_bytes())
        .unwrap();
    host.lane.begin(handle, host.request).unwrap();
    let token = loop {
        host.lane.step(handle, host.out, &mut read).unwrap();
        let step = Step::from_bytes(host.lane.staging.read_array(host.out).unwrap());
        if step.status == STEP_DONE {
            break step.token;
        }
    };
    // All projections are zero, so the residual stream is row 9 of the embedding, all ones, and so
    // is its norm: the logit of a row is the sum of the row, greatest for row 1,000,000.
    assert_eq!(token, 1_000_000);
    assert!(highest > 4 * GIB, "{highest}");
}
