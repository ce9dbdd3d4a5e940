//! A screen that nobody sees, for a browser that cannot be without one.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::{E2eError, Result};
use crate::process::Guard;

/// A virtual X server. It ends when this is dropped, and ends its clients with it.
pub struct Screen {
    name: String,
    _server: Guard,
}

impl Screen {
    pub fn start() -> Result<Screen> {
        let program = "Xvfb";
        let mut command = Command::new(program);
        // It takes the first free number and says which.
        command.args(["-displayfd", "1", "-nolisten", "tcp"]);
        command.args(["-screen", "0", "1200x900x24"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut server = Guard::start(&mut command)?;
        let mut said = String::new();
        if let Some(output) = server.child().stdout.take() {
            let read = BufReader::new(output).read_line(&mut said);
            read.map_err(E2eError::io(program.as_ref()))?;
        }
        match said.trim().parse::<u32>() {
            Ok(number) => Ok(Screen {
                name: format!(":{number}"),
                _server: server,
            }),
            Err(_) => Err(E2eError::Silent {
                program: PathBuf::from(program),
                said,
            }),
        }
    }

    /// For the variable `DISPLAY`.
    pub fn name(&self) -> &str {
        &self.name
    }
}
