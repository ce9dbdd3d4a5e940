//! Memory that the host fills and reads: the only memory whose addresses it may pass.
//!
//! Addresses are looked up, not trusted. A wrong one is refused with `Bounds`, and none can reach
//! a model, a stack or the allocator's own records.

use alloc::vec::Vec;
use core::ops::Range;

use protocol::TrResult;

/// Blocks alive at once: a host needs two or three, so this many are a leak.
pub const BLOCKS_MAX: usize = 64;
/// Enough for every struct and for SIMD loads.
const ALIGN: usize = 16;

/// An address in the lane's memory. Natively, where tests play the host, it is only a number.
pub type Address = u32;

pub struct Staging {
    blocks: Vec<Block>,
    /// Natively, the address of the next block.
    #[cfg(not(target_arch = "wasm32"))]
    next: Address,
}

struct Block {
    memory: Vec<u8>,
    /// The aligned part that the host knows, and its address.
    known: Range<usize>,
    address: Address,
}

impl Block {
    /// Where `len` bytes at `address` lie within the block's memory.
    fn find(&self, address: Address, len: usize) -> Option<Range<usize>> {
        let start = self.known.start + address.checked_sub(self.address)? as usize;
        let end = start.checked_add(len)?;
        (end <= self.known.end).then_some(start..end)
    }
}

impl Staging {
    pub const fn new() -> Staging {
        Staging {
            blocks: Vec::new(),
            #[cfg(not(target_arch = "wasm32"))]
            next: 4096,
        }
    }

    /// Address of a new block of zeros, 16-byte aligned; 0 if there is no memory for it.
    pub fn alloc(&mut self, len: usize) -> Address {
        let mut memory: Vec<u8> = Vec::new();
        let Some(room) = len.max(1).checked_add(ALIGN - 1) else {
            return 0;
        };
        if self.blocks.len() == BLOCKS_MAX
            || self.blocks.try_reserve(1).is_err()
            || memory.try_reserve_exact(room).is_err()
        {
            return 0;
        }
        memory.resize(room, 0);
        let skip = memory.as_ptr().align_offset(ALIGN) % ALIGN;
        let known = skip..skip + len;
        let address = self.address(&memory[known.clone()]);
        self.blocks.push(Block {
            memory,
            known,
            address,
        });
        address
    }

    /// The host writes through this address, so the compiler is told that it is known outside.
    #[cfg(target_arch = "wasm32")]
    fn address(&mut self, known: &[u8]) -> Address {
        known.as_ptr().expose_provenance() as Address
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn address(&mut self, known: &[u8]) -> Address {
        let address = self.next;
        let taken = (known.len() + 1).next_multiple_of(ALIGN) as Address;
        self.next = address.wrapping_add(taken);
        address
    }

    /// Frees a block by its address; an address that is none is ignored.
    pub fn free(&mut self, address: Address) {
        self.blocks.retain(|block| block.address != address);
    }

    pub fn read(&self, address: Address, len: usize) -> Result<&[u8], TrResult> {
        let mut blocks = self.blocks.iter();
        let found = blocks.find_map(|block| Some(&block.memory[block.find(address, len)?]));
        found.ok_or(TrResult::Bounds)
    }

    pub fn read_array<const N: usize>(&self, address: Address) -> Result<&[u8; N], TrResult> {
        self.read(address, N)?.first_chunk().ok_or(TrResult::Bounds)
    }

    pub fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), TrResult> {
        self.place(address, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Where something is to be written.
    pub fn place(&mut self, address: Address, len: usize) -> Result<&mut [u8], TrResult> {
        for block in &mut self.blocks {
            if let Some(range) = block.find(address, len) {
                return Ok(&mut block.memory[range]);
            }
        }
        Err(TrResult::Bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_living_blocks_can_be_reached() {
        let mut staging = Staging::new();
        let (a, b) = (staging.alloc(24), staging.alloc(0));
        assert!(a != 0 && a.is_multiple_of(16) && b != 0 && b != a);
        staging.write(a + 8, &[7; 16]).unwrap();
        assert_eq!(staging.read(a, 24).unwrap()[7..9], [0, 7]);
        assert_eq!(staging.read(b, 0), Ok(&[][..]));
        for (address, len) in [
            (a, 25),
            (a + 24, 1),
            (a.wrapping_sub(1), 1),
            (a + 1, usize::MAX),
            (0, 1),
            (u32::MAX, 1),
            (b, 1),
        ] {
            assert_eq!(
                staging.read(address, len),
                Err(TrResult::Bounds),
                "{address} {len}"
            );
        }
        assert_eq!(staging.write(a + 20, &[0; 5]), Err(TrResult::Bounds));
        staging.free(a + 8);
        assert!(staging.read(a, 24).is_ok());
        staging.free(a);
        assert_eq!(staging.read(a, 1), Err(TrResult::Bounds));
    }

    #[test]
    fn a_leaking_host_is_refused() {
        let mut staging = Staging::new();
        let addresses: Vec<Address> = (0..BLOCKS_MAX).map(|_| staging.alloc(1)).collect();
        assert!(addresses.iter().all(|address| *address != 0));
        assert_eq!(staging.alloc(1), 0);
        assert_eq!(staging.alloc(isize::MAX as usize), 0);
        staging.free(addresses[3]);
        assert_ne!(staging.alloc(1), 0);
    }
}
