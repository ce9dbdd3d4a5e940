//! What is compared, and what is wanted of it.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One piece of work, the same for every engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Work {
    /// The positions of a prompt of 128 tokens and the choice of one token.
    #[serde(rename = "prefill-128")]
    #[value(name = "prefill-128")]
    Read128,
    #[serde(rename = "prefill-512")]
    #[value(name = "prefill-512")]
    Read512,
    /// 127 tokens after the first one, which follows a prompt of 16.
    #[serde(rename = "decode-128")]
    #[value(name = "decode-128")]
    Write128,
}

impl Work {
    pub const ALL: [Work; 3] = [Work::Read128, Work::Read512, Work::Write128];

    /// Tokens of the prompt, which name it too.
    pub fn prompt(self) -> &'static str {
        match self {
            Work::Read128 => "128",
            Work::Read512 => "512",
            Work::Write128 => "16",
        }
    }

    pub fn new_tokens(self) -> u32 {
        match self {
            Work::Read128 | Work::Read512 => 1,
            Work::Write128 => 128,
        }
    }

    /// Tokens that are read or written in the time that counts.
    pub fn counted(self) -> u32 {
        match self {
            Work::Read128 => 128,
            Work::Read512 => 512,
            Work::Write128 => 127,
        }
    }
}

/// Who computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// This engine's lane in a browser.
    Lane {
        browser: &'static str,
        lane: &'static str,
    },
    /// `tinyrustlm bench`.
    Native,
    Llama,
    /// The version's folder.
    Wllama(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entrant {
    pub name: &'static str,
    pub threads: usize,
    pub kind: Kind,
}

const fn lane(name: &'static str, lane: &'static str, threads: usize) -> Entrant {
    let browser = "chromium";
    let kind = Kind::Lane { browser, lane };
    Entrant {
        name,
        threads,
        kind,
    }
}

const fn firefox(name: &'static str, lane: &'static str, threads: usize) -> Entrant {
    let browser = "firefox";
    let kind = Kind::Lane { browser, lane };
    Entrant {
        name,
        threads,
        kind,
    }
}

const fn other(name: &'static str, kind: Kind, threads: usize) -> Entrant {
    Entrant {
        name,
        threads,
        kind,
    }
}

pub const ENTRANTS: &[Entrant] = &[
    lane("chromium relaxed", "relaxed-wasm32", 1),
    lane("chromium simd128", "simd128-wasm32", 1),
    lane("chromium relaxed-threads", "relaxed-threads-wasm32", 1),
    lane("chromium relaxed-threads", "relaxed-threads-wasm32", 2),
    lane("chromium simd128-threads", "simd128-threads-wasm32", 2),
    firefox("firefox relaxed", "relaxed-wasm32", 1),
    firefox("firefox simd128", "simd128-wasm32", 1),
    firefox("firefox relaxed-threads", "relaxed-threads-wasm32", 2),
    other("native avx2", Kind::Native, 1),
    other("native avx2", Kind::Native, 2),
    other("llama.cpp", Kind::Llama, 1),
    other("llama.cpp", Kind::Llama, 2),
    other("wllama 2", Kind::Wllama("wllama2"), 1),
    other("wllama 2", Kind::Wllama("wllama2"), 2),
    other("wllama 3", Kind::Wllama("wllama3"), 1),
    other("wllama 3", Kind::Wllama("wllama3"), 2),
];

/// A line of the table of targets: `ours` must be so many times as fast as the fastest of `theirs`.
pub struct Floor {
    pub ours: (&'static str, usize),
    /// Beginnings of names.
    pub theirs: (&'static str, usize),
    pub write: f64,
    pub read: f64,
}

const fn floor(
    ours: (&'static str, usize),
    theirs: (&'static str, usize),
    (write, read): (f64, f64),
) -> Floor {
    Floor {
        ours,
        theirs,
        write,
        read,
    }
}

pub const FLOORS: &[Floor] = &[
    floor(("chromium relaxed", 1), ("wllama", 1), (5.5, 8.0)),
    floor(("chromium relaxed-threads", 2), ("wllama", 2), (4.5, 7.0)),
    floor(("chromium relaxed", 1), ("llama.cpp", 1), (1.3, 1.2)),
    floor(("chromium simd128", 1), ("llama.cpp", 1), (1.1, 0.9)),
    floor(
        ("chromium relaxed-threads", 2),
        ("llama.cpp", 2),
        (1.4, 1.2),
    ),
    floor(("firefox relaxed", 1), ("chromium relaxed", 1), (0.75, 0.8)),
    floor(("native avx2", 1), ("llama.cpp", 1), (1.6, 1.8)),
    floor(("native avx2", 2), ("native avx2", 1), (1.5, 1.8)),
    floor(
        ("chromium relaxed-threads", 2),
        ("chromium relaxed-threads", 1),
        (1.5, 1.8),
    ),
];

/// Of the tokens a second that the memory's speed allows, with the model of 8-bit weights.
pub const SHARE_OF_MEMORY: f64 = 0.65;
/// A fresh page's first token: at most this part of the other engine's time.
pub const FIRST_TOKEN: f64 = 1.0 / 3.0;
