//! The conversation itself: order of the steps, progress, and what happens to a caller that does
//! not keep to it.
#![allow(clippy::unwrap_used)] // Tests, the functions beside them included.

mod gguf_writer;

use convert::{ConvertError, Converter, Need, Options, Phase, Step};
use format::{Codec, RopeScaling};
use gguf_writer::Gguf;

fn begin(source: &[u8]) -> Converter {
    Converter::gguf("a.gguf", source.len() as u64, Options::default()).unwrap()
}

fn need(converter: &mut Converter) -> Need {
    match converter.poll() {
        Ok(Step::Need(need)) => need,
        other => panic!("{other:?}"),
    }
}

#[test]
fn phases_follow_each_other_and_the_header_is_known_before_the_first_byte() {
    let source = Gguf::small().write();
    let mut converter = begin(&source);
    let (mut phases, mut written) = (Vec::new(), 0);
    loop {
        let progress = converter.progress();
        assert!(progress.done <= progress.total);
        if phases.last() != Some(&progress.phase) {
            phases.push(progress.phase);
        }
        match converter.poll().unwrap() {
            Step::Need(need) => {
                let start = need.at as usize;
                let bytes = &source[start..start + need.len as usize];
                assert!(converter.feed(need.at, bytes).is_ok());
            }
            Step::Write(bytes) => {
                written += bytes.len() as u64;
                assert!(converter.header().is_some());
            }
            Step::Done(outcome) => {
                assert_eq!(outcome.file_len, written);
                break;
            }
        }
        if written == 0 && converter.progress().phase != Phase::Converting {
            assert!(converter.header().is_none());
        }
    }
    assert_eq!(phases, [Phase::Reading, Phase::Checking, Phase::Converting]);
    // The end stays the end.
    assert!(matches!(converter.poll(), Ok(Step::Done(_))));
}

#[test]
fn a_need_is_repeated_until_it_is_met() {
    let source = Gguf::small().write();
    let mut converter = begin(&source);
    let first = need(&mut converter);
    assert_eq!(need(&mut converter), first);
    assert_eq!(first.at, 0);
}

#[test]
fn bytes_that_were_not_asked_for_end_the_conversion() {
    let source = Gguf::small().write();
    let right = need(&mut begin(&source));
    let len = right.len as usize;
    for (at, bytes) in [(1, &source[..len]), (0, &source[..len - 1]), (0, &[][..])] {
        let mut converter = begin(&source);
        need(&mut converter);
        let refused = converter.feed(at, bytes);
        assert!(
            matches!(refused, Err(ConvertError::NotAsked { .. })),
            "{refused:?}"
        );
        // The first error is repeated.
        assert_eq!(converter.poll().err(), refused.err());
    }
    let mut converter = begin(&source);
    let early = converter.feed(0, &source[..len]);
    assert!(matches!(early, Err(ConvertError::NotAsked { .. })));
}

#[test]
fn only_quantizations_can_be_asked_for() {
    for codec in [Codec::F32, Codec::F16, Codec::Bf16, Codec::Bytes] {
        let options = Options {
            quantize: Some(codec),
            ..Default::default()
        };
        let refused = Converter::gguf("a.gguf", 1, options).err();
        assert_eq!(refused, Some(ConvertError::NotAQuantization { codec }));
    }
}

/// The divisors are read from the data section before anything else of it.
#[test]
fn llama_3_scaling_is_recovered_from_its_divisors() {
    let mut file = Gguf::bare();
    // Two heads of 16; the factors as the writers of GGUF compute them, base 10000.
    let divisors = (0..8).flat_map(|pair| {
        let wavelength = 2.0 * std::f64::consts::PI * 10_000_f64.powf(f64::from(pair) / 8.0);
        let smooth = ((8192.0 / wavelength - 1.0) / 3.0).clamp(0.0, 1.0);
        let divisor = 1.0 / ((1.0 - smooth) / 32.0 + smooth);
        (divisor as f32).to_le_bytes()
    });
    file.add("rope_freqs.weight", &[8], 0, divisors.collect());
    let source = file.write();
    let mut converter = begin(&source);
    while converter.header().is_none() {
        let need = need(&mut converter);
        let start = need.at as usize;
        let bytes = &source[start..start + need.len as usize];
        converter.feed(need.at, bytes).unwrap();
        if converter.progress().phase == Phase::Checking
            && matches!(converter.poll(), Ok(Step::Write(_)))
        {
            break;
        }
    }
    let header = converter.header().unwrap();
    let expected = RopeScaling::Llama3 {
        factor: 32.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_context: 8192,
    };
    assert_eq!(header.manifest.architecture.rope.scaling, expected);
}
