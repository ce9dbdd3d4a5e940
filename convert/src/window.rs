//! A file's bytes in order, of which only the part not yet understood is held.

use crate::limits::WINDOW_BYTES;

/// Bytes that arrive in portions and leave in items. An item that has not arrived whole stays, so
/// the window is never larger than the largest item and one portion together.
#[derive(Debug)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    /// First byte of `bytes` that was not taken yet.
    start: usize,
    /// Offset in the file of that byte, or of bytes skipped beyond the end of `bytes`.
    at: u64,
    file_len: u64,
}

/// The file ends before the item does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CutOff {
    pub missing: u64,
}

impl Window {
    pub fn new(file_len: u64) -> Window {
        Window {
            bytes: Vec::new(),
            start: 0,
            at: 0,
            file_len,
        }
    }

    /// Offset in the file of the next byte to take.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// What has arrived and was not taken.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Bytes from here to the end of the file.
    pub fn remaining(&self) -> u64 {
        self.file_len - self.at
    }

    /// Takes `count` bytes that [`rest`](Window::rest) has.
    pub fn take(&mut self, count: usize) {
        self.start += count;
        self.at += count as u64;
    }

    /// Passes over bytes, whether they have arrived or not.
    pub fn skip(&mut self, count: u64) -> Result<(), CutOff> {
        if count > self.remaining() {
            return Err(CutOff {
                missing: count - self.remaining(),
            });
        }
        let held = count.min(self.rest().len() as u64);
        self.take(held as usize);
        self.at += count - held;
        Ok(())
    }

    /// Offset and length of the bytes to fetch so that `rest` has at least `wanted` bytes.
    pub fn request(&self, wanted: u64) -> Result<(u64, u32), CutOff> {
        if wanted > self.remaining() {
            return Err(CutOff {
                missing: wanted - self.remaining(),
            });
        }
        let held = self.rest().len() as u64;
        let missing = (wanted - held.min(wanted)).max(u64::from(WINDOW_BYTES));
        let len = missing.min(self.remaining() - held);
        // Items are bounded far below 4 GiB by `limits`.
        Ok((self.at + held, len.min(u64::from(u32::MAX)) as u32))
    }

    /// Adds the bytes that `request` asked for.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_taken_across_portions_and_skips_fetch_nothing() {
        let mut window = Window::new(10 << 20);
        assert_eq!(window.request(4), Ok((0, 1 << 20)));
        window.push(&[7; 16]);
        window.take(8);
        window.skip(4).unwrap();
        assert_eq!((window.at(), window.rest().len()), (12, 4));
        window.skip(5 << 20).unwrap();
        assert_eq!((window.at(), window.rest().len()), (12 + (5 << 20), 0));
        assert_eq!(window.request(3 << 20), Ok((12 + (5 << 20), 3 << 20)));
        assert_eq!(window.request(5 << 20), Err(CutOff { missing: 12 }));
        assert_eq!(window.skip(5 << 20), Err(CutOff { missing: 12 }));
    }
}
