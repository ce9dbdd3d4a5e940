//! Programs that end with the test that started them, however it ends.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::error::{E2eError, Result};

/// A program to be killed when this is dropped.
pub struct Guard {
    child: Child,
}

impl Guard {
    pub fn start(command: &mut Command) -> Result<Guard> {
        let program = PathBuf::from(command.get_program());
        match command.spawn() {
            Ok(child) => Ok(Guard { child }),
            Err(source) => Err(E2eError::Start { program, source }),
        }
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Both fail only for a program that has ended, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    let address = "127.0.0.1:0";
    let listener = TcpListener::bind(address).map_err(E2eError::net(address))?;
    let bound = listener.local_addr().map_err(E2eError::net(address))?;
    Ok(bound.port())
}

/// Kills every process that was started with `folder` on its command line, and waits until it is
/// gone: a browser's processes all name their profile, and outlive a driver that is killed.
pub fn kill_users_of(folder: &Path) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        let users = users_of(folder.as_os_str());
        if users.is_empty() {
            return;
        }
        for process in users {
            // It may have ended by itself in between.
            drop(Command::new("kill").args(["-KILL", &process]).output());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn users_of(folder: &OsStr) -> Vec<String> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let folder = folder.as_encoded_bytes();
    let names_folder = |process: &str| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        line.windows(folder.len()).any(|bytes| bytes == folder)
    };
    processes
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|process| names_folder(process))
        .collect()
}
