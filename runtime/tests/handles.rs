//! Handles of open models, closed ones, another lane's and none at all: each its own code, in any
//! order of calls.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use protocol::TrResult;
use protocol::abi::{Opened, Options, Plan};
use runtime::tiny::Recipe;
use runtime::{HeaderAt, Lane};

/// As `handles` has it; written here because hosts count on it.
const MODELS_MAX: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Call {
    Open,
    /// Of the handles that were ever given, this one, counted from the newest.
    Close(usize),
    Use(usize),
    Forge(u64),
    /// A real handle with some bits changed.
    Bend(usize, u64),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        3 => Just(Call::Open),
        2 => (0..12usize).prop_map(Call::Close),
        2 => (0..12usize).prop_map(Call::Use),
        1 => any::<u64>().prop_map(Call::Forge),
        2 => (0..12usize, 0..64u32).prop_map(|(nth, bit)| Call::Bend(nth, 1 << bit)),
    ]
}

struct Host {
    lane: Lane,
    header: HeaderAt,
    options: u32,
    out: u32,
}

impl Host {
    fn new(owner: u32) -> Host {
        let (header, file) = Recipe::QUANTIZED.file().unwrap();
        let mut lane = Lane::new(1 << 30);
        lane.set_owner(owner).unwrap();
        let len = header.data_start as u32;
        let address = lane.staging.alloc(len as usize);
        lane.staging.write(address, &file[..len as usize]).unwrap();
        let options = lane.staging.alloc(Options::BYTES);
        let asked = Options {
            context: 4,
            ..Options::default()
        };
        lane.staging.write(options, &asked.to_bytes()).unwrap();
        let out = lane.staging.alloc(Plan::BYTES);
        let file_len = file.len() as u64;
        Host {
            lane,
            header: HeaderAt {
                address,
                len,
                file_len,
            },
            options,
            out,
        }
    }

    fn open(&mut self) -> Result<u64, TrResult> {
        let opened = self.lane.open(self.header, self.options, 1, self.out);
        opened.map_err(|error| error.code())?;
        let bytes = self.lane.staging.read_array(self.out).unwrap();
        Ok(Opened::from_bytes(bytes).handle)
    }

    fn probe(&mut self, handle: u64) -> Result<(), TrResult> {
        let used = self.lane.memory(handle, self.out);
        used.map_err(|error| error.code())
    }
}

fn nth(given: &[u64], back: usize) -> Option<u64> {
    given.iter().rev().nth(back).copied()
}

/// What the table of handles says, kept a second time as a list.
fn expected(open: &[u64], given: &[u64], handle: u64, owner: u16) -> Result<(), TrResult> {
    let slot = handle as u16 as usize;
    if open.contains(&handle) {
        Ok(())
    } else if given.contains(&handle) {
        Err(TrResult::StaleHandle)
    } else if slot >= MODELS_MAX {
        Err(TrResult::InvalidHandle)
    } else if (handle >> 16) as u16 != owner {
        Err(TrResult::ForeignHandle)
    } else {
        Err(TrResult::InvalidHandle)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_handle_has_one_answer(calls in prop::collection::vec(call(), 1..40)) {
        let owner = 7u16;
        let mut host = Host::new(u32::from(owner));
        let (mut open, mut given): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        for call in calls {
            let handle = match call {
                Call::Open => match host.open() {
                    Ok(handle) => {
                        prop_assert!(!given.contains(&handle), "{handle:#x} twice");
                        open.push(handle);
                        given.push(handle);
                        continue;
                    }
                    Err(code) => {
                        prop_assert_eq!((code, open.len()), (TrResult::OutOfMemory, MODELS_MAX));
                        continue;
                    }
                },
                Call::Close(back) | Call::Use(back) | Call::Bend(back, _) => {
                    let Some(handle) = nth(&given, back) else { continue };
                    match call {
                        Call::Bend(_, bits) => handle ^ bits,
                        _ => handle,
                    }
                }
                Call::Forge(handle) => handle,
            };
            let wanted = expected(&open, &given, handle, owner);
            prop_assert_eq!(host.probe(handle), wanted, "{:#x}", handle);
            if let Call::Close(_) = call {
                let closed = host.lane.close(handle).map_err(|error| error.code());
                prop_assert_eq!(closed, wanted);
                open.retain(|other| *other != handle);
            }
        }
    }
}

/// Two lanes of one host count their models alike, and still know whose a handle is.
#[test]
fn another_lanes_handle_is_foreign() {
    let (mut ours, mut theirs) = (Host::new(1), Host::new(2));
    let (a, b) = (ours.open().unwrap(), theirs.open().unwrap());
    assert_eq!(ours.probe(a), Ok(()));
    assert_eq!(ours.probe(b), Err(TrResult::ForeignHandle));
    assert_eq!(theirs.probe(a), Err(TrResult::ForeignHandle));
    let renamed = ours.lane.set_owner(2).map_err(|error| error.code());
    assert_eq!(renamed, Err(TrResult::IllegalState));
}
