//! The native program as a peer: `tinyrustlm seed` and `fetch`, and what they say.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::error::{E2eError, Result};
use crate::places::tinyrustlm;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A native peer. It ends when this is dropped.
pub struct Native {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Native {
    pub fn start(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Native> {
        let program = tinyrustlm()?;
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|source| E2eError::Start { program, source })?;
        let (tell, lines) = channel();
        let out = child
            .stdout
            .take()
            .map(|out| Box::new(out) as Box<dyn std::io::Read + Send>);
        let errors = child
            .stderr
            .take()
            .map(|out| Box::new(out) as Box<dyn std::io::Read + Send>);
        for stream in [out, errors].into_iter().flatten() {
            let tell = tell.clone();
            std::thread::spawn(move || {
                let lines = BufReader::new(stream)
                    .lines()
                    .map_while(std::io::Result::ok);
                lines
                    .take_while(|line| tell.send(line.clone()).is_ok())
                    .count()
            });
        }
        Ok(Native {
            child,
            lines,
            said: Vec::new(),
        })
    }

    /// Types a line.
    pub fn say(&mut self, line: &str) -> Result<()> {
        let program = tinyrustlm()?;
        let typed = self
            .child
            .stdin
            .as_mut()
            .map(|input| writeln!(input, "{line}"));
        typed.unwrap_or(Ok(())).map_err(E2eError::io(&program))
    }

    /// What comes after `start` in the first line that begins with it.
    pub fn wait_for(&mut self, start: &str) -> Result<String> {
        let until = Instant::now() + PATIENCE;
        while let Ok(line) = self
            .lines
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            let found = line.strip_prefix(start).map(str::to_owned);
            self.said.push(line);
            if let Some(rest) = found {
                return Ok(rest);
            }
        }
        Err(E2eError::Silent {
            program: tinyrustlm()?,
            said: self.said.join("\n"),
        })
    }

    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, which must be a good one.
    pub fn end(&mut self) -> Result<()> {
        let program = tinyrustlm()?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match self.child.try_wait().map_err(E2eError::io(&program))? {
                Some(status) if status.success() => return Ok(()),
                Some(_) => break,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        let rest = std::iter::from_fn(|| self.lines.recv_timeout(Duration::from_secs(1)).ok());
        self.said.extend(rest);
        Err(E2eError::Silent {
            program,
            said: self.said.join("\n"),
        })
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
