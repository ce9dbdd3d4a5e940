//! Engines in a browser, each with a profile of its own.

mod lane;
mod wllama;

use std::path::Path;

use e2e::{Browser, Engine, Profile};

use crate::error::Result;
use crate::machine::{Use, peak_mib, processes_of};

pub use lane::Lane;
pub use wllama::Wllama;

/// How long a piece of work took.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub tokens: u32,
    pub wall_s: f64,
    pub cpu_s: f64,
    /// The share of their time that the working threads waited for a core, if it is known.
    pub waited: Option<f64>,
}

/// A browser with what it remembers.
pub struct Seat {
    profile: Profile,
    engine: Engine,
    browser: Option<Browser>,
}

impl Seat {
    fn new(engine: Engine) -> Result<Seat> {
        Ok(Seat {
            profile: Profile::fresh()?,
            engine,
            browser: None,
        })
    }

    /// Ends the browser if there is one, and starts a new one with the same profile.
    async fn start(&mut self) -> Result<&Browser> {
        self.browser = None;
        let started = Browser::start_engine(self.engine, &self.profile).await?;
        Ok(self.browser.insert(started))
    }

    pub fn close(&mut self) {
        self.browser = None;
    }

    pub fn peak_mib(&self) -> f64 {
        peak_mib(&processes_of(self.folder()))
    }

    fn used(&self) -> Use {
        Use::of(&processes_of(self.folder()))
    }

    fn folder(&self) -> &Path {
        self.profile.path()
    }
}
