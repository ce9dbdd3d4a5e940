//! Models by handle: generation in the upper 32 bits, owner and slot in 16 bits each.

use protocol::{Stage, TrResult};

use crate::{Model, RuntimeError};

/// Models open at once; a second one is useful only while hosts change over.
pub const MODELS_MAX: usize = 4;

pub struct Handles {
    /// What the host calls this lane; its handles say so.
    owner: u16,
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
    /// Where a reader is told what to read, and its number; 0 where there is none.
    #[cfg(target_feature = "atomics")]
    pub reader: [u32; 2],
}

impl Handles {
    pub const fn new() -> Handles {
        const EMPTY: Slot = Slot {
            generation: 0,
            open: None,
        };
        Handles {
            owner: 0,
            slots: [EMPTY; MODELS_MAX],
        }
    }

    /// `IllegalState` once there was a model.
    pub fn set_owner(&mut self, owner: u16) -> Result<(), RuntimeError> {
        if self.slots.iter().any(|slot| slot.generation > 0) {
            return Err(RuntimeError::new(TrResult::IllegalState, Stage::Start));
        }
        self.owner = owner;
        Ok(())
    }

    /// `OutOfMemory` if every slot is taken or worn out.
    pub fn insert(&mut self, open: Open) -> Result<u64, RuntimeError> {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.open.is_none() && slot.generation < u32::MAX {
                slot.generation += 1;
                slot.open = Some(open);
                let lower = u64::from(self.owner) << 16 | index as u64;
                return Ok(u64::from(slot.generation) << 32 | lower);
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
        let (index, generation) = (handle as u16 as usize, (handle >> 32) as u32);
        let is_ours = (handle >> 16) as u16 == self.owner;
        let slot = self
            .slots
            .get_mut(index)
            .ok_or_else(|| refuse(TrResult::InvalidHandle))?;
        match generation {
            _ if !is_ours => Err(refuse(TrResult::ForeignHandle)),
            0 => Err(refuse(TrResult::InvalidHandle)),
            newest if newest == slot.generation => Ok(slot),
            old if old < slot.generation => Err(refuse(TrResult::StaleHandle)),
            _ => Err(refuse(TrResult::InvalidHandle)),
        }
    }
}
