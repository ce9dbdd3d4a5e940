//! Prints how fast a model file runs, prompt and reply apart, and the hash of its logits.
//!
//! `cargo run --release -p runtime --features threads --example token_speed -- FILE.slm [WORKERS]`

use std::time::Instant;

use format::{Header, PIECE_BYTES, header_len};
use protocol::abi::STEP_DONE;
use runtime::sampler::Settings;
use runtime::{Engine, Kernels, Model, Options, Request, RuntimeError, Source, Team};

const PROMPT: usize = 512;
const NEW: u32 = 128;

struct InMemory<'a>(&'a [u8]);

impl Source for InMemory<'_> {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
        into.copy_from_slice(&self.0[at as usize..][..into.len()]);
        Ok(())
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a model file");
    let workers = arguments
        .next()
        .map_or(1, |text| text.parse().expect("workers"));
    let file = std::fs::read(path).expect("a readable file");
    let len = file.len() as u64;
    let start = *file.first_chunk().expect("a model file");
    let header_len = header_len(start, len).expect("a model file") as usize;
    let header = Header::parse(&file[..header_len], len).expect("header");
    let options = Options {
        context: PROMPT as u32 + NEW,
        ..Options::default()
    };
    let team = Team::threads(workers).expect("threads");
    let kernels = Kernels::best();
    let engine = Engine {
        kernels,
        team,
        ..Engine::default()
    };
    let mut model = Model::open_with(header, options, u64::MAX, engine).expect("memory");
    for at in (model.first()..len).step_by(PIECE_BYTES as usize) {
        let piece = (len - at).min(u64::from(PIECE_BYTES)) as u32;
        model.load(&mut InMemory(&file), at, piece).expect("bytes");
    }
    model.ready().expect("finite weights");
    for digest in [false, true, false, false] {
        run(&mut model, digest);
    }
}

fn run(model: &mut Model, digest: bool) {
    let vocab = model.header().manifest.architecture.vocab;
    let ids: Vec<u32> = (0..PROMPT as u32).map(|i| i * 7919 % vocab).collect();
    let request = Request {
        ids: &ids,
        max_new: NEW,
        sampling: Settings {
            vocab,
            ..Settings::GREEDY
        },
        ignore_eos: true,
        digest,
        cold: true,
        argmax: false,
        number: 0,
    };
    let start = Instant::now();
    model.begin(request).expect("a good request");
    let mut first = None;
    loop {
        let step = model.step().expect("finite logits");
        if step.has_token == 1 && first.is_none() {
            first = Some(Instant::now());
        }
        if step.status == STEP_DONE {
            break;
        }
    }
    let first = first.expect("a token");
    println!(
        "prompt {:.1} tokens/s, reply {:.1} tokens/s",
        PROMPT as f64 / (first - start).as_secs_f64(),
        f64::from(NEW - 1) / first.elapsed().as_secs_f64(),
    );
    if digest {
        println!("logits {}", model.digest());
    }
}
