//! The memory of a real conversion: 98 MB of source, a fraction of that at a time.

mod in_memory;

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

#[test]
fn a_real_model_is_converted_in_a_few_mebibytes() {
    let mut written = 0;
    let outcome = in_memory::gguf_file(&in_memory::real_model(), |bytes| written += bytes.len());
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(written as u64, outcome.file_len);
    // The bound of the crate is 64 MiB; this file needs far less.
    let peak = MEMORY.peak_usage();
    assert!(peak < 16 * 1024 * 1024, "{peak} bytes");
}
