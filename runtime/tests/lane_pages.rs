//! Pages of the cache through the C functions of a lane, called natively as a host would.

#![allow(clippy::unwrap_used)]

mod host;

use host::{Host, PROMPT, request};
use protocol::TrResult;
use protocol::abi::{Known, STEP_DONE, Span, Step};

/// What one lane has computed, another one need not compute.
#[test]
fn pages_go_out_and_come_back_through_staging() {
    let ready = || {
        let mut host = Host::new(1 << 30);
        let opened = host.open();
        host.load(opened).unwrap();
        host.ready(opened.handle).unwrap();
        let ids: Vec<u8> = PROMPT.iter().flat_map(|id| id.to_le_bytes()).collect();
        let at = host.lane.staging.alloc(ids.len());
        host.lane.staging.write(at, &ids).unwrap();
        (host, opened.handle, (at, PROMPT.len() as u32))
    };
    let known = |host: &mut Host, handle, ids| {
        host.lane.known(handle, ids, host.out).unwrap();
        Known::from_bytes(host.read())
    };
    let (mut host, handle, ids) = ready();
    assert_eq!(known(&mut host, handle, ids).tokens, 0);
    host.begin(handle, request()).unwrap();
    let running = host.lane.known(handle, ids, host.out).unwrap_err();
    assert_eq!(running.code(), TrResult::IllegalState);
    host.step(handle).unwrap();
    while Step::from_bytes(host.read()).status != STEP_DONE {
        host.step(handle).unwrap();
    }
    let Known { tokens, page_bytes } = known(&mut host, handle, ids);
    assert_eq!(tokens, 5);

    let to = host.lane.staging.alloc(page_bytes as usize);
    let short = (to, page_bytes - 1);
    let refused = host.lane.page_out(handle, ids, 0, short, host.out);
    assert_eq!(host.code(refused), TrResult::Bounds);
    let outside = (to + 16, page_bytes);
    let refused = host.lane.page_out(handle, ids, 0, outside, host.out);
    assert_eq!(host.code(refused), TrResult::Bounds);
    let copied = host
        .lane
        .page_out(handle, ids, 0, (to, page_bytes), host.out);
    assert_eq!(host.code(copied), TrResult::Ok);
    let span = Span::from_bytes(host.read());
    assert_eq!(span.ptr, to);
    let page = host
        .lane
        .staging
        .read(to, span.len as usize)
        .unwrap()
        .to_vec();

    let (mut other, handle, ids) = ready();
    let from = other.lane.staging.alloc(page.len());
    other.lane.staging.write(from, &page).unwrap();
    let cut = (from, span.len - 4);
    let refused = other.lane.page_in(handle, ids, 0, cut);
    assert_eq!(other.code(refused), TrResult::InvalidArgument);
    let refused = other.lane.page_in(handle + 1, ids, 0, (from, span.len));
    assert_ne!(other.code(refused), TrResult::Ok);
    let taken = other.lane.page_in(handle, ids, 0, (from, span.len));
    assert_eq!(other.code(taken), TrResult::Ok);
    assert_eq!(known(&mut other, handle, ids).tokens, 5);
}
