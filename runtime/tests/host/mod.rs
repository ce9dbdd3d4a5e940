//! A host of a lane, for tests: every struct as bytes in staging memory.
#![allow(dead_code, reason = "each test binary uses its own part")]

use protocol::TrResult;
use protocol::abi::{
    ErrorPlace, FLAG_DIGEST, FLAG_IGNORE_EOS, KV_F16, MODE_INT8_V1, Opened, Options, Plan,
    RESIDENCY_FULL, Request,
};
use runtime::tiny::Recipe;
use runtime::{HeaderAt, Lane, RuntimeError};

pub const OPTIONS: Options = Options {
    mode: MODE_INT8_V1,
    kv_format: KV_F16,
    context: 0,
    prefill_tile: 0,
    residency: RESIDENCY_FULL,
    kept_layers: 0,
    reserved: 0,
};
pub const PROMPT: [u32; 5] = [3, 14, 15, 9, 26];
pub const OUT: usize = Plan::BYTES;

/// A host with one model file.
pub struct Host {
    pub lane: Lane,
    pub file: Vec<u8>,
    pub header: HeaderAt,
    pub options: u32,
    pub out: u32,
}

impl Host {
    pub fn new(memory_bytes: u64) -> Host {
        let (header, file) = Recipe::QUANTIZED.file().unwrap();
        let mut lane = Lane::new(memory_bytes);
        let len = header.data_start as u32;
        let address = lane.staging.alloc(len as usize);
        lane.staging.write(address, &file[..len as usize]).unwrap();
        let options = lane.staging.alloc(Options::BYTES);
        lane.staging.write(options, &OPTIONS.to_bytes()).unwrap();
        let out = lane.staging.alloc(OUT);
        let header = HeaderAt {
            address,
            len,
            file_len: file.len() as u64,
        };
        Host {
            lane,
            file,
            header,
            options,
            out,
        }
    }

    pub fn read<const N: usize>(&self) -> &[u8; N] {
        self.lane.staging.read_array(self.out).unwrap()
    }

    pub fn code(&mut self, result: Result<(), RuntimeError>) -> TrResult {
        let code = self.lane.code(result);
        TrResult::from_code(code).unwrap()
    }

    pub fn error(&mut self) -> ErrorPlace {
        self.lane.error(self.out).unwrap();
        ErrorPlace::from_bytes(self.read())
    }

    pub fn plan(&mut self) -> Plan {
        self.lane.plan(self.header, self.options, self.out).unwrap();
        Plan::from_bytes(self.read())
    }

    pub fn open(&mut self) -> Opened {
        let result = self.lane.open(self.header, self.options, 5, self.out);
        assert_eq!(self.code(result), TrResult::Ok);
        Opened::from_bytes(self.read())
    }

    pub fn load(&mut self, opened: Opened) -> Result<(), RuntimeError> {
        let (first, len) = (opened.first, opened.len as u32);
        let mut read = reader(&self.file);
        self.lane
            .load(opened.handle, first, len, self.out, &mut read)
    }

    pub fn ready(&mut self, handle: u64) -> Result<(), RuntimeError> {
        self.lane.ready(handle, &mut reader(&self.file))
    }

    pub fn step(&mut self, handle: u64) -> Result<(), RuntimeError> {
        let out = self.out;
        self.lane.step(handle, out, &mut reader(&self.file))
    }

    pub fn begin(&mut self, handle: u64, request: Request) -> Result<(), RuntimeError> {
        let ids: Vec<u8> = PROMPT.iter().flat_map(|id| id.to_le_bytes()).collect();
        let at = self.lane.staging.alloc(Request::BYTES + ids.len());
        let ids_at = at + Request::BYTES as u32;
        let request = Request {
            ids: ids_at,
            ids_len: 5,
            ..request
        };
        self.lane.staging.write(at, &request.to_bytes()).unwrap();
        self.lane.staging.write(ids_at, &ids).unwrap();
        let result = self.lane.begin(handle, at);
        self.lane.staging.free(at);
        result
    }
}

/// `host_read` of a file under the number 5.
pub fn reader(file: &[u8]) -> impl FnMut(u32, u64, &mut [u8]) -> i32 {
    |source, at, into| {
        assert_eq!(source, 5);
        into.copy_from_slice(&file[at as usize..][..into.len()]);
        0
    }
}

pub fn request() -> Request {
    Request {
        max_new: 6,
        flags: FLAG_IGNORE_EOS | FLAG_DIGEST,
        top_p: 1.0,
        repetition_penalty: 1.0,
        vocab: 50,
        ..Request::default()
    }
}
