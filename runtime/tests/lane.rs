//! The C functions of a lane, called natively as a host would: every struct as bytes in staging
//! memory. The exports themselves add nothing to these calls.

#![allow(clippy::unwrap_used)]

mod host;
mod models;

use host::{Host, OPTIONS, OUT, PROMPT, request};
use models::{INT8, greedy, run, tiny};
use protocol::abi::{
    Counters, DETAIL_REGION, Options, Plan, RESIDENCY_HYBRID, RESIDENCY_PAGED, Request, STEP_DONE,
    SelfTest, Step,
};
use protocol::{Stage, TrResult};
use runtime::tiny::Recipe;
use runtime::{HeaderAt, TRANSFER_BYTES};

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
    let alone = host.plan();
    let opened = host.open();
    let result = host.lane.open(host.header, host.options, 5, host.out);
    assert_eq!(host.code(result), TrResult::OutOfMemory);
    // What could be opened in place of the open one is asked beside it.
    assert_eq!(host.plan(), alone);
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
