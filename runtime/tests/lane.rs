//! The C functions of a lane, called natively as a host would: every struct as bytes in staging
//! memory. The exports themselves add nothing to these calls.

#![allow(clippy::unwrap_used)]

mod models;

use models::{INT8, greedy, run, tiny};
use protocol::abi::{
    Counters, DETAIL_REGION, ErrorPlace, FLAG_DIGEST, FLAG_IGNORE_EOS, KV_F16, MODE_INT8_V1,
    Opened, Options, Plan, RESIDENCY_FULL, RESIDENCY_HYBRID, RESIDENCY_PAGED, Request, STEP_DONE,
    SelfTest, Step,
};
use protocol::{Stage, TrResult};
use runtime::tiny::Recipe;
use runtime::{HeaderAt, Lane, RuntimeError, TRANSFER_BYTES};

const OPTIONS: Options = Options {
    mode: MODE_INT8_V1,
    kv_format: KV_F16,
    context: 0,
    prefill_tile: 0,
    residency: RESIDENCY_FULL,
    kept_layers: 0,
    reserved: 0,
};
const PROMPT: [u32; 5] = [3, 14, 15, 9, 26];
const OUT: usize = Plan::BYTES;

/// A host with one model file.
struct Host {
    lane: Lane,
    file: Vec<u8>,
    header: HeaderAt,
    options: u32,
    out: u32,
}

impl Host {
    fn new(memory_bytes: u64) -> Host {
        let (header, file) = Recipe::QUANTIZED.file().unwrap();
        let mut lane = Lane::new(memory_bytes);
        let len = header.data_start as u32;
        let address = lane.staging.alloc(len as usize);
        lane.staging.write(address, &file[..len as usize]).unwrap();
        let options = lane.staging.alloc(Options::BYTES);
        lane.staging.write(options, &OPTIONS.to_bytes()).unwrap();
        let out = lane.staging.alloc(OUT);
        let header = HeaderAt {
            address,
            len,
            file_len: file.len() as u64,
        };
        Host {
            lane,
            file,
            header,
            options,
            out,
        }
    }

    fn read<const N: usize>(&self) -> &[u8; N] {
        self.lane.staging.read_array(self.out).unwrap()
    }

    fn code(&mut self, result: Result<(), RuntimeError>) -> TrResult {
        let code = self.lane.code(result);
        TrResult::from_code(code).unwrap()
    }

    fn error(&mut self) -> ErrorPlace {
        self.lane.error(self.out).unwrap();
        ErrorPlace::from_bytes(self.read())
    }

    fn plan(&mut self) -> Plan {
        self.lane.plan(self.header, self.options, self.out).unwrap();
        Plan::from_bytes(self.read())
    }

    fn open(&mut self) -> Opened {
        let result = self.lane.open(self.header, self.options, 5, self.out);
        assert_eq!(self.code(result), TrResult::Ok);
        Opened::from_bytes(self.read())
    }

    fn load(&mut self, opened: Opened) -> Result<(), RuntimeError> {
        let (first, len) = (opened.first, opened.len as u32);
        let mut read = reader(&self.file);
        self.lane
            .load(opened.handle, first, len, self.out, &mut read)
    }

    fn ready(&mut self, handle: u64) -> Result<(), RuntimeError> {
        self.lane.ready(handle, &mut reader(&self.file))
    }

    fn step(&mut self, handle: u64) -> Result<(), RuntimeError> {
        let out = self.out;
        self.lane.step(handle, out, &mut reader(&self.file))
    }

    fn begin(&mut self, handle: u64, request: Request) -> Result<(), RuntimeError> {
        let ids: Vec<u8> = PROMPT.iter().flat_map(|id| id.to_le_bytes()).collect();
        let at = self.lane.staging.alloc(Request::BYTES + ids.len());
        let ids_at = at + Request::BYTES as u32;
        let request = Request {
            ids: ids_at,
            ids_len: 5,
            ..request
        };
        self.lane.staging.write(at, &request.to_bytes()).unwrap();
        self.lane.staging.write(ids_at, &ids).unwrap();
        let result = self.lane.begin(handle, at);
        self.lane.staging.free(at);
        result
    }
}

/// `host_read` of a file under the number 5.
fn reader(file: &[u8]) -> impl FnMut(u32, u64, &mut [u8]) -> i32 {
    |source, at, into| {
        assert_eq!(source, 5);
        into.copy_from_slice(&file[at as usize..][..into.len()]);
        0
    }
}

fn request() -> Request {
    Request {
        max_new: 6,
        flags: FLAG_IGNORE_EOS | FLAG_DIGEST,
        top_p: 1.0,
        repetition_penalty: 1.0,
        vocab: 50,
        ..Request::default()
    }
}

#[test]
fn a_host_gets_the_ids_and_bits_of_the_native_door() {
    let mut host = Host::new(1 << 30);
    host.lane.self_test(host.out).unwrap();
    let tests = SelfTest::from_bytes(host.read());
    assert!(tests.tests >= 10 && tests.failed == 0, "{tests:?}");

    let plan = host.plan();
    let opened = host.open();
    host.lane.memory(opened.handle, host.out).unwrap();
    let memory = Plan::from_bytes(host.read());
    for ((region, planned), (_, taken)) in plan.regions().into_iter().zip(memory.regions()) {
        assert!(
            planned.abs_diff(taken) * 50 <= planned,
            "region {region}: {planned} {taken}"
        );
    }
    assert_eq!(opened.first + opened.len, host.file.len() as u64);
    host.load(opened).unwrap();
    let whole = format::piece_hash(&host.file, host.file.len() as u64);
    assert_eq!(host.read(), &whole.0);
    host.ready(opened.handle).unwrap();
    host.begin(opened.handle, request()).unwrap();
    let mut ids = Vec::new();
    loop {
        host.step(opened.handle).unwrap();
        let step = Step::from_bytes(host.read());
        ids.extend((step.has_token == 1).then_some(step.token));
        if step.status == STEP_DONE {
            break;
        }
    }
    host.lane.digest(opened.handle, host.out).unwrap();
    let digest = format::Digest(*host.read());
    host.lane.counters(host.out).unwrap();
    let counters = Counters::from_bytes(host.read());
    assert!(counters.scalar_calls + counters.simd_calls + counters.relaxed_calls > 0);
    host.lane.close(opened.handle).unwrap();

    let mut model = tiny(&Recipe::QUANTIZED, INT8);
    let around = plan.control + plan.stacks + plan.transfer;
    assert_eq!(model.plan().total + around, plan.total);
    let native = greedy(&model, &PROMPT, 6);
    let native = run(&mut model, native);
    assert_eq!((ids, digest), (native.ids, native.digest));
}

/// Every call with a place to write to, given one that is none: refused, and without effect.
#[test]
fn pointers_outside_staging_are_refused() {
    let mut host = Host::new(1 << 30);
    let (header, options) = (host.header, host.options);
    let opened = host.open();
    host.load(opened).unwrap();
    host.ready(opened.handle).unwrap();
    host.begin(opened.handle, request()).unwrap();
    for out in [0, host.out + OUT as u32 - 8, u32::MAX] {
        let mut no_read = |_: u32, _: u64, _: &mut [u8]| panic!("nothing is read");
        let results = [
            host.lane.self_test(out),
            host.lane.plan(header, options, out),
            host.lane.plan(header, out, host.out),
            host.lane.plan(
                HeaderAt {
                    address: out,
                    ..header
                },
                options,
                host.out,
            ),
            host.lane.plan(
                HeaderAt {
                    len: u32::MAX,
                    ..header
                },
                options,
                host.out,
            ),
            host.lane.open(header, options, 5, out),
            host.lane.load(opened.handle, 0, 1, out, &mut no_read),
            host.lane.begin(opened.handle, out),
            host.lane.step(opened.handle, out, &mut no_read),
            host.lane.digest(opened.handle, out),
            host.lane.counters(out),
        ];
        for (call, result) in results.into_iter().enumerate() {
            assert_eq!(
                host.code(result),
                TrResult::Bounds,
                "call {call} at {out:#x}"
            );
        }
        assert_eq!(host.error().code, TrResult::Bounds as i32);
    }
    // No step was taken and nothing was opened meanwhile.
    host.step(opened.handle).unwrap();
    assert_eq!(Step::from_bytes(host.read()).generated, 0);
    assert_eq!(host.open().handle & 0xffff_ffff, 1);
}

/// One byte and one page too little: refused by the region, with both numbers.
#[test]
fn a_little_too_little_memory_is_refused_by_its_region() {
    let whole = Host::new(1 << 30).plan();
    assert!(whole.transfer > TRANSFER_BYTES && whole.control > 0);
    for short in [1, 65_536] {
        let mut host = Host::new(whole.total - short);
        let result = host.lane.open(host.header, host.options, 5, host.out);
        assert_eq!(host.code(result), TrResult::OutOfMemory);
        let place = host.error();
        assert_eq!(place.detail, DETAIL_REGION);
        let mut before = 0;
        for (region, bytes) in whole.regions() {
            before += bytes;
            if region == place.item {
                assert_eq!(place.found, bytes);
                assert_eq!(before - (bytes - place.expected), whole.total - short);
            }
        }
        // The plan says all of it, and a limit that is set is the lane's.
        assert_eq!(
            host.plan(),
            Plan {
                limit: whole.total - short,
                ..whole
            }
        );
        host = Host::new(1 << 30);
        host.lane.set_limit(whole.total - short).unwrap();
        let result = host.lane.open(host.header, host.options, 5, host.out);
        assert_eq!(host.code(result), TrResult::OutOfMemory);
    }
    Host::new(whole.total).open();
}

#[test]
fn failures_say_where() {
    let mut host = Host::new(1 << 30);
    let opened = host.open();
    let mut refuse = |_: u32, _: u64, _: &mut [u8]| 21;
    let len = opened.len as u32;
    let result = host
        .lane
        .load(opened.handle, opened.first, len, host.out, &mut refuse);
    assert_eq!(host.code(result), TrResult::HostRead);
    assert_eq!((host.error().at, host.error().found), (opened.first, 21));

    let cut = HeaderAt {
        len: host.header.len - 64,
        ..host.header
    };
    let result = host.lane.plan(cut, host.options, host.out);
    assert_eq!(host.code(result), TrResult::InvalidModel);
    let wrong = Options { mode: 9, ..OPTIONS };
    host.lane
        .staging
        .write(host.options, &wrong.to_bytes())
        .unwrap();
    let result = host.lane.plan(host.header, host.options, host.out);
    assert_eq!(host.code(result), TrResult::InvalidArgument);

    host.load(opened).unwrap();
    host.ready(opened.handle).unwrap();
    let result = host.begin(
        opened.handle,
        Request {
            flags: 1 << 20,
            ..request()
        },
    );
    assert_eq!(host.code(result), TrResult::InvalidArgument);
    let result = host.begin(
        opened.handle,
        Request {
            reserved: 1,
            ..request()
        },
    );
    assert_eq!(host.code(result), TrResult::InvalidArgument);
}

/// What one open model takes is not there for the next, and is back when it is closed.
#[test]
fn models_share_the_memory_of_a_lane() {
    let mut host = Host::new(1 << 30);
    let one = host.plan();
    let around = one.control + one.stacks + one.transfer;
    let mut host = Host::new(one.total * 2 - around - 1);
    let opened = host.open();
    let result = host.lane.open(host.header, host.options, 5, host.out);
    assert_eq!(host.code(result), TrResult::OutOfMemory);
    host.lane.close(opened.handle).unwrap();
    host.open();
}

/// Hybrid and paged through the lane's door give the native bits, and a host that cannot read in
/// the middle of a forward pass is told where.
#[test]
fn a_lane_pages_through_host_read() {
    let mut model = tiny(&Recipe::QUANTIZED, INT8);
    let native = greedy(&model, &PROMPT, 6);
    let native = run(&mut model, native);
    for residency in [RESIDENCY_HYBRID, RESIDENCY_PAGED] {
        let mut host = Host::new(1 << 30);
        let options = Options {
            residency,
            ..OPTIONS
        };
        let bytes = options.to_bytes();
        host.lane.staging.write(host.options, &bytes).unwrap();
        let opened = host.open();
        host.load(opened).unwrap();
        host.ready(opened.handle).unwrap();
        host.begin(opened.handle, request()).unwrap();
        if residency == RESIDENCY_PAGED {
            let mut refuse = |_: u32, _: u64, _: &mut [u8]| 21;
            let result = host.lane.step(opened.handle, host.out, &mut refuse);
            assert_eq!(host.code(result), TrResult::HostRead);
            let place = host.error();
            assert_eq!((place.found, place.stage), (21, Stage::Prefill as u32));
            let result = host.step(opened.handle);
            assert_eq!(host.code(result), TrResult::IllegalState);
            host.begin(opened.handle, request()).unwrap();
        }
        let mut ids = Vec::new();
        loop {
            host.step(opened.handle).unwrap();
            let step = Step::from_bytes(host.read());
            ids.extend((step.has_token == 1).then_some(step.token));
            if step.status == STEP_DONE {
                break;
            }
        }
        host.lane.digest(opened.handle, host.out).unwrap();
        assert_eq!(
            (ids, format::Digest(*host.read())),
            (native.ids.clone(), native.digest)
        );
    }
}
