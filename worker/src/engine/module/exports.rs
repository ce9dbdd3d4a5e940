//! What a lane exports, as `protocol::abi` lists it.

use js_sys::WebAssembly;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// What a lane exports.
    pub type Exports;

    #[wasm_bindgen(method, getter)]
    pub fn memory(this: &Exports) -> WebAssembly::Memory;
    #[wasm_bindgen(method, catch)]
    pub fn rt_team(this: &Exports, workers: u32, out: u32) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_meet(this: &Exports, workers: u32, rounds: u32, out: u32) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_reader(this: &Exports, handle: u64, out: u32) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_abi(this: &Exports) -> Result<u32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_alloc(this: &Exports, len: u32) -> Result<u32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_free(this: &Exports, ptr: u32, len: u32) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_self_test(this: &Exports, out: u32) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_plan(
        this: &Exports,
        header: u32,
        header_len: u32,
        file_len: u64,
        options: u32,
        out: u32,
    ) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_open(
        this: &Exports,
        header: u32,
        header_len: u32,
        file_len: u64,
        options: u32,
        source: u32,
        out: u32,
    ) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_load(
        this: &Exports,
        handle: u64,
        at: u64,
        len: u32,
        out: u32,
    ) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_ready(this: &Exports, handle: u64) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_begin(this: &Exports, handle: u64, request: u32) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_step(this: &Exports, handle: u64, out: u32) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_stop(this: &Exports, handle: u64) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_digest(this: &Exports, handle: u64, out: u32) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_known(
        this: &Exports,
        handle: u64,
        ids: u32,
        ids_len: u32,
        out: u32,
    ) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_page_out(
        this: &Exports,
        handle: u64,
        ids: u32,
        ids_len: u32,
        block: u32,
        to: u32,
        to_len: u32,
        out: u32,
    ) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_page_in(
        this: &Exports,
        handle: u64,
        ids: u32,
        ids_len: u32,
        block: u32,
        from: u32,
        from_len: u32,
    ) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_counters(this: &Exports, out: u32) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_error(this: &Exports, out: u32) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_close(this: &Exports, handle: u64) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_memory(this: &Exports, handle: u64, out: u32) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_owner(this: &Exports, owner: u32) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_limit(this: &Exports, bytes: u64) -> Result<i32, JsValue>;
    #[wasm_bindgen(method, catch)]
    pub fn rt_refused(this: &Exports) -> Result<u32, JsValue>;
}
