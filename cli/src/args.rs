//! The command line.

mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use format::Root;
use runtime::{PREFILL_TILE_MAX, WORKERS_MAX};

use values::{above_zero, not_below_zero, root, share};

/// Private chat with small language models: convert, inspect, run and serve model files.
///
/// Nothing is sent anywhere but by seed, fetch and serve. Exit codes: 0 good, 2 wrong usage, 3 the
/// input was refused, 130 fetch was interrupted, 1 anything else.
#[derive(Parser)]
#[command(name = "tinyrustlm", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Turn a .gguf file, or a folder with config.json and safetensors, into a .slm file.
    Convert(Convert),
    /// Show what a .slm file contains, and check of it what can be checked.
    Inspect(Inspect),
    /// Answer one prompt, streaming the text; figures follow on standard error.
    Run(Run),
    /// Read JSON lines with prompts, write JSON lines with greedy continuations and logits.
    ///
    /// Input, one object a line: {"id": any, "ids": [token ids] | "messages": [{"role","content"}]
    /// | "text": "...", "max_new": n, "ignore_eos": bool, "logits": bool, "argmax": bool}.
    Eval(Eval),
    /// Read JSON lines with text or messages, write JSON lines with token ids.
    ///
    /// Input, one object a line: {"id", "text", "special": bool} or
    /// {"id", "messages", "add_generation_prompt": bool}.
    Tokenize(Tokenize),
    /// Measure load, first token, prefill, decode and stopping with fixed prompts.
    Bench(Bench),
    /// Say whether a .slm file would fit into memory, part by part, and what helps if it would not.
    Fit(Fit),
    /// Serve the app and the models of a folder to browsers, with a tracker for sharing.
    Serve(Serve),
    /// Give a model to whoever has the link that this prints.
    Seed(Seed),
    /// Get the model of a link, from peers and servers at once; goes on where it was interrupted.
    Fetch(Fetch),
    /// Write a torrent of a model, for other programs.
    Torrent(Torrent),
}

#[derive(Args)]
pub struct Convert {
    /// A .gguf file, or a folder with config.json, safetensors and perhaps tokenizer.json.
    pub input: PathBuf,
    /// The .slm file to write; it appears only when it is complete.
    #[arg(short, long, value_name = "OUT.slm")]
    pub output: PathBuf,
    /// Quantize float matrices; without this no weight is changed.
    #[arg(long, value_enum)]
    pub quantize: Option<Quantize>,
    /// With --quantize: also matrices that are quantized already, which rounds them twice.
    #[arg(long, requires = "quantize")]
    pub requantize: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Quantize {
    /// 8.5 bits a weight.
    #[value(name = "q8_0")]
    Q8_0,
    /// 4.5 bits a weight.
    #[value(name = "q4_0")]
    Q4_0,
    /// 5 bits a weight.
    #[value(name = "q4_1")]
    Q4_1,
}

#[derive(Args)]
pub struct Inspect {
    /// The .slm file.
    pub model: PathBuf,
    /// The root that the file must have; without it that of MODEL.torrent or MODEL.pieces, where
    /// one of them lies beside the file.
    #[arg(long, value_name = "HEX", value_parser = root)]
    pub root: Option<Root>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
    /// List every tensor.
    #[arg(long)]
    pub tensors: bool,
}

/// How the engine runs.
#[derive(Args, Clone)]
pub struct Engine {
    /// Numerical mode.
    #[arg(long, value_enum, default_value_t = Mode::Int8V1)]
    pub mode: Mode,
    /// Threads; the output does not depend on it.
    #[arg(long, default_value_t = 1,
        value_parser = value_parser!(u16).range(1..=WORKERS_MAX as i64))]
    pub threads: u16,
    /// Prompt positions computed together; the output does not depend on it.
    #[arg(long, value_name = "N",
        value_parser = value_parser!(u32).range(1..=i64::from(PREFILL_TILE_MAX)))]
    pub prefill_tile: Option<u32>,
    /// Positions to make room for; by default what the model was made for, at most 8192.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub context: Option<u32>,
    /// Number format of the KV cache; by default f32 in strict-f32-v1 and f16 in int8-v1.
    #[arg(long, value_enum)]
    pub kv: Option<Kv>,
    /// Kernels to use; the output does not depend on it.
    #[arg(long, value_enum, default_value_t = Lane::Best)]
    pub kernels: Lane,
    /// Which weights are held in memory; the output does not depend on it.
    #[arg(long, value_enum, default_value_t = Held::Full)]
    pub residency: Held,
    /// Megabytes that the model may take.
    #[arg(long, value_name = "MB", value_parser = above_zero)]
    pub memory_limit: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Held {
    /// All.
    Full,
    /// Embedding, norms, head and as many layers as fit; the others are read as they are needed.
    Hybrid,
    /// Hardly any; everything is read as it is needed.
    Paged,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Activations stay floats; the slower, to compare with.
    #[value(name = "strict-f32-v1")]
    StrictF32V1,
    /// Activations are rounded to 8 bits, as the app does.
    #[value(name = "int8-v1")]
    Int8V1,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kv {
    /// The most exact.
    #[value(name = "f32")]
    F32,
    /// Half of that.
    #[value(name = "f16")]
    F16,
    /// The smallest; costs a little quality.
    #[value(name = "int8")]
    Int8,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Lane {
    /// The fastest that this processor has.
    Best,
    /// Without vectors.
    Scalar,
}

#[derive(Args)]
pub struct Fit {
    /// The .slm file.
    pub model: PathBuf,
    #[command(flatten)]
    pub engine: Engine,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Run {
    /// The .slm file.
    pub model: PathBuf,
    /// What to say to the model.
    #[arg(short, long)]
    pub prompt: String,
    /// Instructions that come before the conversation.
    #[arg(long)]
    pub system: Option<String>,
    /// Continue the prompt as plain text instead of answering it.
    #[arg(long)]
    pub complete: bool,
    /// Tokens to write at most.
    #[arg(long, default_value_t = 256, value_parser = value_parser!(u32).range(1..))]
    pub max_new: u32,
    /// 0 always takes the most likely token; by default what the model recommends, else 0.
    #[arg(long, value_parser = not_below_zero)]
    pub temperature: Option<f32>,
    /// Choose among so many of the likeliest tokens; 0 among all.
    #[arg(long)]
    pub top_k: Option<u32>,
    /// Choose among the likeliest tokens that together have this probability, 0 to 1; 1 among all.
    #[arg(long, value_parser = share)]
    pub top_p: Option<f32>,
    /// The same seed gives the same text, on every machine.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub engine: Engine,
}

#[derive(Args)]
pub struct Eval {
    /// The .slm file.
    pub model: PathBuf,
    #[command(flatten)]
    pub engine: Engine,
}

#[derive(Args)]
pub struct Tokenize {
    /// The .slm file.
    pub model: PathBuf,
}

#[derive(Args)]
pub struct Bench {
    /// The .slm file.
    pub model: PathBuf,
    /// Prompt positions.
    #[arg(long, default_value_t = 128, value_parser = value_parser!(u32).range(1..))]
    pub prompt: u32,
    /// Tokens to decode.
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u32).range(2..))]
    pub decode: u32,
    /// Repetitions of each part; the median is shown.
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Print one JSON object instead of text: all figures, or why there are none.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub engine: Engine,
}

#[derive(Args)]
pub struct Serve {
    /// Folder of the built app.
    #[arg(long, default_value = "dist")]
    pub app: PathBuf,
    /// Folder with .slm files to offer.
    #[arg(long)]
    pub models: Option<PathBuf>,
    /// Port to listen on; 0 takes any that is free.
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// Address to listen on. Anything but loopback is open to the network.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: std::net::IpAddr,
    /// The address by which others reach this server, for the links; by default what it listens on.
    #[arg(long, value_name = "URL")]
    pub public: Option<String>,
    /// Slow every answer down to this many bytes a second.
    #[arg(long, value_name = "BYTES", value_parser = value_parser!(u64).range(1..))]
    pub throttle: Option<u64>,
    /// Leave out COOP and COEP, as hosts do that cannot send headers.
    #[arg(long)]
    pub no_isolation_headers: bool,
    /// Append one JSON line for every request: method, path, range, status.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// How peers are reached.
#[derive(Args)]
pub struct Reach {
    /// Use only this address of this machine.
    #[arg(long, value_name = "IP")]
    pub listen: Option<std::net::IpAddr>,
    /// A server that helps through routers: stun:HOST:PORT, or turn:HOST:PORT,USER,PASSWORD. It
    /// learns this machine's address. None by default.
    #[arg(long, value_name = "URL")]
    pub ice_server: Vec<String>,
}

#[derive(Args)]
pub struct Seed {
    /// The .slm file to give.
    pub model: PathBuf,
    /// A tracker (ws:// or wss://) where others find this.
    #[arg(long, value_name = "URL")]
    pub tracker: Vec<String>,
    /// An address (http:// or https://) of the same file, to be named in the link.
    #[arg(long, value_name = "URL")]
    pub source: Vec<String>,
    /// Connect to one other by codes that two people exchange, without any server.
    #[arg(long)]
    pub manual: bool,
    /// The app's address, to make a link that opens it.
    #[arg(long, value_name = "URL")]
    pub app: Option<String>,
    /// Bytes a second to give at most, to all together.
    #[arg(long, value_name = "BYTES", value_parser = value_parser!(u32).range(1..))]
    pub upload: Option<u32>,
    #[command(flatten)]
    pub reach: Reach,
    /// Give wrong bytes, to see what others do about it.
    #[arg(long, hide = true)]
    pub lie: bool,
}

#[derive(Args)]
pub struct Fetch {
    /// What `seed`, `serve` or the app printed, or its part from #slm1= on.
    pub link: String,
    /// The .slm file to write; by default named after the model. It appears only when complete.
    #[arg(short, long, value_name = "OUT.slm")]
    pub output: Option<PathBuf>,
    /// Give to others what is here, while the rest comes.
    #[arg(long)]
    pub share: bool,
    /// With --share: bytes a second to give at most, to all together.
    #[arg(long, value_name = "BYTES", requires = "share",
        value_parser = value_parser!(u32).range(1..))]
    pub upload: Option<u32>,
    #[command(flatten)]
    pub reach: Reach,
}

#[derive(Args)]
pub struct Torrent {
    /// The .slm file to describe.
    pub model: PathBuf,
    /// The .torrent file to write; by default beside the model.
    #[arg(short, long, value_name = "OUT.torrent")]
    pub output: Option<PathBuf>,
    /// An address (http:// or https://) of the same file, for those who fetch it from a server.
    #[arg(long, value_name = "URL")]
    pub source: Vec<String>,
    /// A tracker of BitTorrent.
    #[arg(long, value_name = "URL")]
    pub tracker: Vec<String>,
}
