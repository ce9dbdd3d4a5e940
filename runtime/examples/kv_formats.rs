//! What each format of the key/value cache costs and gives: perplexity and agreement over one long
//! sequence, time to the first token without and with a known prefix, and of pages on their way.
//!
//! `cargo run --release -p runtime --example kv_formats -- FILE.slm GREEDY.json`, where the second
//! file is the reference prompts with their continuations (`golden/smollm2-135m/greedy.json`).

use std::time::Instant;

use format::{Header, PIECE_BYTES, header_len};
use protocol::KvFormat;
use protocol::abi::STEP_DONE;
use runtime::sampler::Settings;
use runtime::{Model, Options, Request, RuntimeError, Source};
use serde_json::Value;

/// As many ids of the reference, one conversation behind the other.
const LEN: usize = 768;
const PROMPT: usize = 512;

struct InMemory<'a>(&'a [u8]);

impl Source for InMemory<'_> {
    fn read_at(&mut self, at: u64, into: &mut [u8]) -> Result<(), RuntimeError> {
        into.copy_from_slice(&self.0[at as usize..][..into.len()]);
        Ok(())
    }
}

/// What one format says of the sequence.
struct Said {
    best: Vec<u32>,
    /// Natural logarithms of the probabilities of what really follows.
    logs: Vec<f64>,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a model file");
    let reference = arguments.next().expect("a reference file");
    let file = std::fs::read(path).expect("a readable file");
    let ids = reference_ids(&std::fs::read_to_string(reference).expect("a readable file"));
    let mut exact: Option<Said> = None;
    for format in KvFormat::ALL {
        let mut model = open(&file, format);
        let said = said(&mut model, &ids);
        let mean = said.logs.iter().sum::<f64>() / said.logs.len() as f64;
        let exact = exact.get_or_insert_with(|| Said {
            best: said.best.clone(),
            logs: said.logs.clone(),
        });
        let same = said.best.iter().zip(&exact.best).filter(|(a, b)| a == b);
        let widest = said
            .logs
            .iter()
            .zip(&exact.logs)
            .map(|(a, b)| (a - b).abs());
        println!(
            "{:4}: perplexity {:.4}, best token as with f32 {}/{}, widest change of a log {:.3}",
            format.name(),
            (-mean).exp(),
            same.count(),
            said.best.len(),
            widest.fold(0.0, f64::max),
        );
        times(&mut model, &file, format, &ids);
    }
}

fn reference_ids(json: &str) -> Vec<u32> {
    let reference: Value = serde_json::from_str(json).expect("JSON");
    let cases = reference["cases"].as_array().expect("cases");
    let of = |case: &Value, key: &str| -> Vec<u32> {
        let ids = case[key].as_array().expect("ids").iter();
        ids.map(|id| id.as_u64().expect("an id") as u32).collect()
    };
    let all = cases
        .iter()
        .flat_map(|case| [of(case, "prompt_ids"), of(case, "new_ids")].concat());
    all.take(LEN).collect()
}

fn open(file: &[u8], kv_format: KvFormat) -> Model {
    let len = file.len() as u64;
    let start = *file.first_chunk().expect("a model file");
    let header_len = header_len(start, len).expect("a model file") as usize;
    let header = Header::parse(&file[..header_len], len).expect("header");
    let options = Options {
        context: LEN as u32,
        kv_format,
        ..Options::default()
    };
    let mut model = Model::open(header, options, u64::MAX).expect("memory");
    for at in (model.first()..len).step_by(PIECE_BYTES as usize) {
        let piece = (len - at).min(u64::from(PIECE_BYTES)) as u32;
        model.load(&mut InMemory(file), at, piece).expect("bytes");
    }
    model.ready().expect("finite weights");
    model
}

/// Milliseconds until the logits after `ids` are there.
fn run(model: &mut Model, ids: &[u32], cold: bool) -> f64 {
    let vocab = model.header().manifest.architecture.vocab;
    let start = Instant::now();
    model
        .begin(Request {
            ids,
            max_new: 0,
            sampling: Settings {
                vocab,
                ..Settings::GREEDY
            },
            ignore_eos: true,
            digest: false,
            cold,
            argmax: false,
            number: 0,
        })
        .expect("a good request");
    while model.step().expect("finite logits").status != STEP_DONE {}
    start.elapsed().as_secs_f64() * 1e3
}

/// Every position alone, each on the prefix before it.
fn said(model: &mut Model, ids: &[u32]) -> Said {
    let mut said = Said {
        best: Vec::new(),
        logs: Vec::new(),
    };
    for end in 1..ids.len() {
        run(model, &ids[..end], false);
        let logits = model.logits();
        let most = logits.iter().copied().fold(f32::MIN, f32::max);
        let best = logits.iter().position(|x| *x == most).expect("a greatest");
        let sum: f64 = logits.iter().map(|x| f64::from(x - most).exp()).sum();
        said.best.push(best as u32);
        said.logs
            .push(f64::from(logits[ids[end] as usize] - most) - sum.ln());
    }
    said
}

fn times(model: &mut Model, file: &[u8], format: KvFormat, ids: &[u32]) {
    let ids = &ids[..PROMPT];
    let cold = (0..3)
        .map(|_| run(model, ids, true))
        .fold(f64::MAX, f64::min);
    let warm = (0..3)
        .map(|_| run(model, ids, false))
        .fold(f64::MAX, f64::min);
    let blocks = PROMPT.div_ceil(32);
    let mut page = vec![0; model.page_bytes().expect("idle")];
    let start = Instant::now();
    let pages: Vec<Vec<u8>> = (0..blocks)
        .map(|block| {
            let len = model
                .copy_page(ids, block, &mut page)
                .expect("a known page");
            page[..len].to_vec()
        })
        .collect();
    let out = start.elapsed().as_secs_f64() * 1e3;
    let mut again = open(file, format);
    let start = Instant::now();
    for (block, page) in pages.iter().enumerate() {
        again.restore_page(ids, block, page).expect("its page");
    }
    let back = start.elapsed().as_secs_f64() * 1e3;
    println!(
        "      prompt of {PROMPT}: cold {cold:.0} ms, known {warm:.1} ms; {:.1} MB out {out:.1} ms, \
         back {back:.1} ms, then {:.1} ms",
        pages.iter().map(Vec::len).sum::<usize>() as f64 / 1e6,
        run(&mut again, ids, false),
    );
}
