//! The models of the matrix, and what the native program makes of them.

use std::path::{Path, PathBuf};

use e2e::{convert, eval, golden, model_gguf, model_slm};
use format::Digest;
use protocol::Mode;
use serde_json::json;

/// One position at a time, tiles that leave rests, and one larger than any prompt here but one.
pub const TILES: [u32; 4] = [1, 5, 32, 128];
pub const THREADS: [u32; 3] = [1, 2, 3];

/// Ids, and the digest of the logits of every position that had some.
pub type Answer = (Vec<u32>, Digest);

/// A model with a request.
pub struct Subject {
    /// Of its file, without the ending.
    pub name: &'static str,
    pub model: PathBuf,
    pub context: u32,
    prompt: u32,
    pub steps: u32,
    pub modes: &'static [Mode],
    pub tiles: &'static [u32],
    pub size: Size,
}

/// How much of the matrix a subject is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// Every cell.
    Tiny,
    /// A real model, with a short request: natively the scalar kernels take one thread.
    Real,
    /// A long request: too long for a scalar lane.
    Long,
}

/// Small models of the golden folder, as each codec leaves them.
pub fn tiny(folder: &Path) -> Vec<Subject> {
    let both: &[Mode] = &[Mode::Int8V1, Mode::StrictF32V1];
    [
        ("llama_gqa_headdim", "", both),
        ("llama_bias", "q8_0", both),
        ("llama_rope_yarn", "q4_0", both),
        ("llama_gqa_tied", "q4_1", both),
    ]
    .map(|(name, codec, modes)| {
        let model = folder.join(format!("{name}.slm"));
        convert(&golden().unwrap().join("tiny").join(name), codec, &model).unwrap();
        Subject {
            name,
            model,
            context: 256,
            prompt: 150,
            steps: 16,
            modes,
            tiles: &TILES,
            size: Size::Tiny,
        }
    })
    .into()
}

/// The real model as it comes and with all matrices in q8_0.
pub fn real(folder: &Path) -> Vec<Subject> {
    let as_it_comes = folder.join("as_it_comes.slm");
    std::os::unix::fs::symlink(model_slm().unwrap(), &as_it_comes).unwrap();
    let q8_0 = folder.join("q8_0.slm");
    convert(&model_gguf().unwrap(), "q8_0", &q8_0).unwrap();
    let short = |name, model| Subject {
        name,
        model,
        context: 512,
        prompt: 40,
        steps: 8,
        modes: &[Mode::Int8V1],
        tiles: &TILES,
        size: Size::Real,
    };
    let long = Subject {
        prompt: 150,
        steps: 64,
        tiles: &[128],
        size: Size::Long,
        ..short("as_it_comes", as_it_comes.clone())
    };
    vec![short("as_it_comes", as_it_comes), short("q8_0", q8_0), long]
}

impl Subject {
    /// Ids below 251, which every vocabulary here has.
    pub fn prompt(&self) -> Vec<u32> {
        (0..self.prompt).map(|i| (37 * i + 11) % 251).collect()
    }

    /// What all native kernels, thread counts and tiles agree on.
    pub fn native(&self, mode: Mode) -> Answer {
        let mut agreed: Option<Answer> = None;
        for kernels in ["best", "scalar"] {
            for threads in THREADS {
                if kernels == "scalar" && !self.is_worth_scalar(threads) {
                    continue;
                }
                for tile in self.tiles {
                    let found = self.eval(mode, kernels, threads, *tile);
                    assert_eq!(found.0.len(), self.steps as usize);
                    let want = agreed.get_or_insert_with(|| found.clone());
                    let cell = format!("{}, {kernels}, {threads} threads, tile {tile}", self.name);
                    assert_eq!(&found, want, "{cell}");
                }
            }
        }
        agreed.unwrap()
    }

    fn is_worth_scalar(&self, threads: u32) -> bool {
        match self.size {
            Size::Tiny => true,
            Size::Real => threads == 1,
            Size::Long => false,
        }
    }

    fn eval(&self, mode: Mode, kernels: &str, threads: u32, tile: u32) -> Answer {
        let mode = match mode {
            Mode::Int8V1 => "int8-v1",
            Mode::StrictF32V1 => "strict-f32-v1",
        };
        let number = |number: u32| number.to_string();
        let (threads, tile, context) = (number(threads), number(tile), number(self.context));
        let arguments = [
            ["--mode", mode],
            ["--kernels", kernels],
            ["--threads", &threads],
            ["--prefill-tile", &tile],
            ["--context", &context],
            // As the worker asks for in both modes.
            ["--kv", "f16"],
        ];
        let line = json!({ "ids": self.prompt(), "max_new": self.steps, "ignore_eos": true });
        let answer = eval(&self.model, arguments.as_flattened(), &[line])
            .unwrap()
            .remove(0);
        let ids = serde_json::from_value(answer["ids"].clone()).unwrap();
        let digest = answer["logits_sha256"].as_str().unwrap();
        (ids, Digest::from_hex(digest).unwrap())
    }
}
