//! A second opinion: our own reading of a module's sections, straight from the specification's
//! binary format, which knows nothing of instructions and shares no code with the first.

use std::collections::BTreeSet;

use super::{Inventory, Memory};
use crate::error::LaneFault;

const CUSTOM: u8 = 0;
const IMPORTS: u8 = 2;
const FUNCTIONS: u8 = 3;
const MEMORIES: u8 = 5;
const EXPORTS: u8 = 7;
const START: u8 = 8;
const CODE: u8 = 10;

/// What the sections say.
#[derive(Debug, Default, PartialEq)]
pub struct Sections {
    pub imports: Vec<String>,
    pub exports: BTreeSet<String>,
    pub memories: Vec<Memory>,
    /// Bodies of code, each as long as it says, that fill their section to the last byte.
    pub functions: u32,
    pub customs: Vec<String>,
    pub has_start: bool,
}

/// Bytes that are read from the front; `None` when they end too early.
struct Reader<'m> {
    rest: &'m [u8],
}

impl Sections {
    /// Walks the whole module; the error is the offset of the section that cannot be read.
    pub fn of(module: &[u8]) -> Result<Sections, usize> {
        let mut seen = Sections::default();
        let mut declared = 0;
        let Some((b"\0asm\x01\0\0\0", body)) = module.split_at_checked(8) else {
            return Err(0);
        };
        let mut reader = Reader { rest: body };
        while !reader.rest.is_empty() {
            let at = module.len() - reader.rest.len();
            let (id, section) = reader.section().ok_or(at)?;
            let mut section = Reader { rest: section };
            seen.take(id, &mut section, &mut declared).ok_or(at)?;
            // What is not read here is not left over either.
            let is_read = [IMPORTS, FUNCTIONS, MEMORIES, EXPORTS, START, CODE].contains(&id);
            if is_read && !section.rest.is_empty() {
                return Err(at);
            }
        }
        match seen.functions == declared {
            true => Ok(seen),
            false => Err(module.len()),
        }
    }

    fn take(&mut self, id: u8, section: &mut Reader<'_>, declared: &mut u32) -> Option<()> {
        match id {
            CUSTOM => self.customs.push(section.name()?),
            IMPORTS => {
                for _ in 0..section.number()? {
                    let name = format!("{}.{}", section.name()?, section.name()?);
                    self.imports.push(name);
                    self.memories.extend(section.import()?);
                }
            }
            FUNCTIONS => {
                *declared = section.number()?;
                for _ in 0..*declared {
                    section.number()?;
                }
            }
            MEMORIES => {
                for _ in 0..section.number()? {
                    let memory = section.memory(false)?;
                    self.memories.push(memory);
                }
            }
            EXPORTS => {
                for _ in 0..section.number()? {
                    self.exports.insert(section.name()?);
                    section.byte()?;
                    section.number()?;
                }
            }
            START => {
                section.number()?;
                self.has_start = true;
            }
            CODE => {
                self.functions = section.number()?;
                for _ in 0..self.functions {
                    let len = section.number()?;
                    // A body ends with the instruction `end`.
                    let body = section.bytes(len as usize)?;
                    (body.last() == Some(&0x0b)).then_some(())?;
                }
            }
            _ => {}
        }
        Some(())
    }

    /// Whether the first opinion says the same.
    pub fn agree(&self, first: &Inventory) -> Result<(), LaneFault> {
        let same = [
            ("imports", self.imports == first.imports),
            ("exports", self.exports == first.exports),
            ("memories", self.memories == first.memories),
            ("functions", self.functions == first.functions),
            ("custom sections", self.customs == first.customs),
            ("the start function", self.has_start == first.has_start),
        ];
        match same.iter().find(|(_, same)| !same) {
            Some((what, _)) => Err(LaneFault::Disagreement { what }),
            None => Ok(()),
        }
    }
}

impl<'m> Reader<'m> {
    fn section(&mut self) -> Option<(u8, &'m [u8])> {
        let id = self.byte()?;
        let len = self.number()?;
        Some((id, self.bytes(len as usize)?))
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn bytes(&mut self, len: usize) -> Option<&'m [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }

    /// An unsigned LEB128 number of at most 32 bits.
    fn number(&mut self) -> Option<u32> {
        let mut value = 0u64;
        for index in 0..5 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return u32::try_from(value).ok();
            }
        }
        None
    }

    fn name(&mut self) -> Option<String> {
        let len = self.number()?;
        let bytes = self.bytes(len as usize)?;
        String::from_utf8(bytes.to_vec()).ok()
    }

    /// What is imported; a memory is of interest, and others than functions are not known here.
    fn import(&mut self) -> Option<Option<Memory>> {
        match self.byte()? {
            0 => self.number().map(|_| None),
            2 => self.memory(true).map(Some),
            _ => None,
        }
    }

    /// Limits of a memory with 32-bit addresses.
    fn memory(&mut self, imported: bool) -> Option<Memory> {
        let flags = self.byte()?;
        let initial = u64::from(self.number()?);
        let maximum = match flags {
            0 | 2 => None,
            1 | 3 => Some(u64::from(self.number()?)),
            _ => return None,
        };
        Some(Memory {
            imported,
            shared: flags & 2 != 0,
            initial,
            maximum,
        })
    }
}
