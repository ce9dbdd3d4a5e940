//! Reading one item out of the bytes at hand, or finding that more are needed.

use crate::ConvertError;
use crate::window::CutOff;

/// Why an item could not be read.
#[derive(Debug, PartialEq)]
pub(crate) enum Stop {
    /// The item needs at least so many bytes from its own start.
    Short(u64),
    /// The file ends within the item.
    CutOff(CutOff),
    Refused(ConvertError),
}

impl From<CutOff> for Stop {
    fn from(cut: CutOff) -> Stop {
        Stop::CutOff(cut)
    }
}

impl From<ConvertError> for Stop {
    fn from(error: ConvertError) -> Stop {
        Stop::Refused(error)
    }
}

/// Little-endian fields, one after the other. Nothing is consumed until the whole item is there.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, pos: 0 }
    }

    /// Bytes read so far.
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// `count` is bounded by the caller.
    pub fn bytes(&mut self, count: u64) -> Result<&'a [u8], Stop> {
        let wanted = self.pos as u64 + count;
        if wanted > self.bytes.len() as u64 {
            return Err(Stop::Short(wanted));
        }
        let bytes = &self.bytes[self.pos..wanted as usize];
        self.pos = wanted as usize;
        Ok(bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut out = [0; N];
        out.copy_from_slice(self.bytes(N as u64)?);
        Ok(out)
    }

    pub fn u32(&mut self) -> Result<u32, Stop> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Stop> {
        self.array().map(u64::from_le_bytes)
    }
}
