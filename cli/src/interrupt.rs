//! Ctrl-C while a file is written: the writer ends by itself, and takes away what is not whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;

use crate::failure::Failure;

/// From its making on Ctrl-C no longer ends the program; whoever works asks here.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub fn watch() -> Result<Interrupt, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        let registered = signal_hook::flag::register(SIGINT, Arc::clone(&asked));
        registered.map_err(|error| Failure::Machine(format!("Ctrl-C cannot be heard: {error}")))?;
        Ok(Interrupt(asked))
    }

    /// `Interrupted` once a person has pressed Ctrl-C.
    pub fn check(&self) -> Result<(), Failure> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Failure::Interrupted(
                "It was ended before it was done.".into(),
            )),
            false => Ok(()),
        }
    }
}
