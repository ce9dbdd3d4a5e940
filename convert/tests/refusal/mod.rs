//! One row of the hostile catalogue: a file, the refusal it must end in, and what it may cost.
#![allow(dead_code)]

use convert::{ConvertError, Converter, Options, Step};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The bound of the crate, for every file however large.
const MEMORY_MAX: usize = 64 * 1024 * 1024;

/// A name, the file, and whether an error is the right one.
pub type Row = (&'static str, Vec<u8>, fn(&ConvertError) -> bool);

/// Makes a row whose refusal matches a pattern.
#[macro_export]
macro_rules! refused {
    ($what:literal, $file:expr, $pattern:pat $(if $guard:expr)?) => {
        ($what, $file, |error| matches!(error, $pattern $(if $guard)?))
    };
}

/// Converts every file and compares. One test of a binary calls this, so that no other test
/// takes memory at the same time.
pub fn check(rows: &[Row]) {
    for (what, file, right) in rows {
        let (result, peak) = measured(file);
        match result {
            Ok(()) => panic!("{what}: accepted"),
            Err(error) => {
                assert!(right(&error), "{what}: {error:?}");
                assert!(!error.to_string().is_empty() && !error.remedy().is_empty());
                assert!(error.to_string().len() < 600, "{what}: {error}");
            }
        }
        assert!(peak < MEMORY_MAX, "{what}: {peak} bytes of memory");
    }
}

/// Converts a file without keeping the output; gives the most memory taken meanwhile.
pub fn measured(file: &[u8]) -> (Result<(), ConvertError>, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let result = convert(file);
    (result, MEMORY.peak_usage().saturating_sub(before))
}

fn convert(file: &[u8]) -> Result<(), ConvertError> {
    let len = file.len() as u64;
    let mut converter = Converter::gguf("hostile.gguf", len, Options::default())?;
    // Two passes over the source in windows of 1 MiB, and a tail for each tensor.
    let mut turns_left = 1000 + 4 * (file.len() >> 20);
    loop {
        turns_left = turns_left.checked_sub(1).expect("too many turns");
        match converter.poll()? {
            Step::Need(need) => {
                let end = need.at + u64::from(need.len);
                assert!(need.len > 0 && end <= len, "{need:?} of {len} bytes");
                converter.feed(need.at, &file[need.at as usize..end as usize])?;
            }
            Step::Write(bytes) => assert!(!bytes.is_empty()),
            Step::Done(_) => return Ok(()),
        }
    }
}
