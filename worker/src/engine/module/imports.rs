//! What a lane imports: the bytes of its model's file, and with threads their memory.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Object, Reflect, Uint8Array, WebAssembly};
use protocol::TrResult;
use wasm_bindgen::prelude::*;
use web_sys::FileSystemFileHandle;

/// `host_read(source, offset, dst, len) -> code`.
pub type HostRead = Closure<dyn FnMut(u32, u64, u32, u32) -> i32>;

/// A file that can be read straight into a view of another module's memory.
pub trait ReadIntoView {
    /// Fills the whole view from byte `at` on; `false` if it could not.
    fn read_into_view(&self, at: u64, view: &Uint8Array) -> bool;

    /// The same file for another worker to read, if that can be had.
    fn lent(&self) -> Option<FileSystemFileHandle>;
}

/// What the lane's only import reaches.
pub struct Host<F> {
    /// The open model's file, under the number that the lane was given for it.
    pub(super) file: RefCell<Option<(u32, F)>>,
    pub(super) memory: RefCell<Option<WebAssembly::Memory>>,
}

/// The import object of a lane that is not instantiated yet.
pub struct Imports<F> {
    pub(super) host: Rc<Host<F>>,
    pub(super) read: HostRead,
}

impl<F: ReadIntoView + 'static> Default for Imports<F> {
    fn default() -> Imports<F> {
        let host = Rc::new(Host {
            file: RefCell::new(None),
            memory: RefCell::new(None),
        });
        let reached = Rc::clone(&host);
        let read = Closure::new(move |source: u32, offset: u64, dst: u32, len: u32| {
            reached.read(source, offset, dst, len)
        });
        Imports { host, read }
    }
}

impl<F: ReadIntoView + 'static> Imports<F> {
    /// `{env: {host_read, memory}}`; a lane of one thread has its own memory.
    pub fn object(&self, shared: Option<&WebAssembly::Memory>) -> Result<Object, JsValue> {
        let env = Object::new();
        Reflect::set(&env, &"host_read".into(), self.read.as_ref())?;
        if let Some(memory) = shared {
            Reflect::set(&env, &"memory".into(), memory)?;
        }
        let imports = Object::new();
        Reflect::set(&imports, &"env".into(), &env)?;
        Ok(imports)
    }
}

impl<F: ReadIntoView> Host<F> {
    /// The import: 0, or a code.
    fn read(&self, source: u32, offset: u64, dst: u32, len: u32) -> i32 {
        let file = self.file.borrow();
        let memory = self.memory.borrow();
        let (Some((number, file)), Some(memory)) = (file.as_ref(), memory.as_ref()) else {
            return TrResult::InvalidHandle as i32;
        };
        if *number != source {
            return TrResult::InvalidHandle as i32;
        }
        let view = Uint8Array::new_with_byte_offset_and_length(&memory.buffer(), dst, len);
        if file.read_into_view(offset, &view) {
            TrResult::Ok as i32
        } else {
            TrResult::HostRead as i32
        }
    }
}
