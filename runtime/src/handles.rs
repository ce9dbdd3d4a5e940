//! Models by handle: generation in the upper 32 bits, slot in the lower.

use protocol::{Stage, TrResult};

use crate::{Model, RuntimeError};

/// Models open at once; a second one is useful only while hosts change over.
pub const MODELS_MAX: usize = 4;

pub struct Handles {
    slots: [Slot; MODELS_MAX],
}

struct Slot {
    /// Of the newest model of this slot; 0 if there never was one.
    generation: u32,
    open: Option<Open>,
}

/// A model and the number under which the host knows its file.
pub struct Open {
    pub model: Model,
    pub source: u32,
}

impl Handles {
    pub const fn new() -> Handles {
        const EMPTY: Slot = Slot {
            generation: 0,
            open: None,
        };
        Handles {
            slots: [EMPTY; MODELS_MAX],
        }
    }

    /// `OutOfMemory` if every slot is taken or worn out.
    pub fn insert(&mut self, open: Open) -> Result<u64, RuntimeError> {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.open.is_none() && slot.generation < u32::MAX {
                slot.generation += 1;
                slot.open = Some(open);
                return Ok(u64::from(slot.generation) << 32 | index as u64);
            }
        }
        Err(RuntimeError::new(TrResult::OutOfMemory, Stage::Allocate))
    }

    pub fn get(&mut self, handle: u64) -> Result<&mut Open, RuntimeError> {
        let slot = self.slot(handle)?;
        slot.open
            .as_mut()
            .ok_or_else(|| RuntimeError::new(TrResult::StaleHandle, Stage::Start))
    }

    /// Frees the model.
    pub fn remove(&mut self, handle: u64) -> Result<Open, RuntimeError> {
        let slot = self.slot(handle)?;
        slot.open
            .take()
            .ok_or_else(|| RuntimeError::new(TrResult::StaleHandle, Stage::Start))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Open> {
        self.slots.iter().filter_map(|slot| slot.open.as_ref())
    }

    /// The slot, if its newest generation is the handle's.
    fn slot(&mut self, handle: u64) -> Result<&mut Slot, RuntimeError> {
        let refuse = |code| RuntimeError::new(code, Stage::Start);
        let (index, generation) = (handle as u32 as usize, (handle >> 32) as u32);
        let slot = self
            .slots
            .get_mut(index)
            .ok_or_else(|| refuse(TrResult::InvalidHandle))?;
        match generation {
            0 => Err(refuse(TrResult::InvalidHandle)),
            newest if newest == slot.generation => Ok(slot),
            old if old < slot.generation => Err(refuse(TrResult::StaleHandle)),
            _ => Err(refuse(TrResult::InvalidHandle)),
        }
    }
}
