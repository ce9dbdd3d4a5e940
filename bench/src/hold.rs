//! The machine to oneself, for a while.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::error::{BenchError, Result};

/// Locked files. Every program that locks one of them before it computes waits meanwhile.
pub struct Hold<'a> {
    paths: &'a [PathBuf],
    files: Vec<File>,
    since: Instant,
    /// Others wait at most about this long, and one piece of work more.
    turn: Duration,
}

impl<'a> Hold<'a> {
    pub fn take(paths: &'a [PathBuf], turn_s: f64) -> Result<Hold<'a>> {
        let mut hold = Hold {
            paths,
            files: Vec::new(),
            since: Instant::now(),
            turn: Duration::from_secs_f64(turn_s),
        };
        hold.lock()?;
        Ok(hold)
    }

    /// Between two pieces of work: lets others go first if it has been long.
    pub fn breathe(&mut self) -> Result<()> {
        if self.files.is_empty() || self.since.elapsed() < self.turn {
            return Ok(());
        }
        self.files.clear();
        std::thread::sleep(Duration::from_millis(500));
        self.lock()
    }

    fn lock(&mut self) -> Result<()> {
        for path in self.paths {
            let file = File::options()
                .create(true)
                .append(true)
                .open(path)
                .map_err(BenchError::io(path))?;
            file.lock().map_err(BenchError::io(path))?;
            self.files.push(file);
        }
        self.since = Instant::now();
        Ok(())
    }
}
