//! The program and others beside it, run as a person would.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::sized::sized_source;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program that runs until it ends or is dropped.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    /// All that it has said so far, on both streams.
    pub said: Vec<String>,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (tell, lines) = channel();
        let streams: [Box<dyn std::io::Read + Send>; 2] = [
            Box::new(child.stdout.take().unwrap()),
            Box::new(child.stderr.take().unwrap()),
        ];
        for stream in streams {
            let tell = tell.clone();
            std::thread::spawn(move || {
                let lines = BufReader::new(stream).lines().map_while(Result::ok);
                lines
                    .take_while(|line| tell.send(line.clone()).is_ok())
                    .count()
            });
        }
        Running {
            child,
            lines,
            said: Vec::new(),
        }
    }

    pub fn stdin(&mut self) -> &mut ChildStdin {
        self.child.stdin.as_mut().unwrap()
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.stdin(), "{line}").unwrap();
    }

    /// What comes after `start` in the first line that begins with it.
    pub fn wait_for(&mut self, start: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if let Some(rest) = line.strip_prefix(start) {
                        return rest.to_owned();
                    }
                }
                Err(_) => panic!("never said {start:?}, but {:?}", self.said),
            }
        }
    }

    /// As Ctrl-C does.
    pub fn interrupt(&self) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &id])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Its exit code, when it has ended by itself.
    pub fn end(&mut self) -> i32 {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.said.extend(self.lines.iter());
                return status.code().unwrap();
            }
            if Instant::now() > until {
                self.child.kill().unwrap();
                self.said.extend(self.lines.iter());
                panic!("it does not end; it said {:?}", self.said);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _was_running = self.child.kill().is_ok();
        let _is_gone = self.child.wait().is_ok();
    }
}

pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tinyrustlm"))
}

/// Where `scripts/setup tests` installs the programs that these tests are held against.
pub fn peers() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache");
    let peers = cache.unwrap_or_else(home).join("tinyrustlm/peers");
    assert!(
        peers.is_dir(),
        "scripts/setup tests makes {}",
        peers.display()
    );
    peers
}

pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/sharing")
        .join(name)
}

/// A sound model of 6 MiB.
pub fn model(folder: &Path, seed: u64) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden");
    let source = sized_source(&golden, folder, 24_000, seed).unwrap();
    let slm = folder.join(format!("model-{seed}.slm"));
    let status = program()
        .arg("convert")
        .arg(&source)
        .arg("-o")
        .arg(&slm)
        .status();
    assert!(status.unwrap().success());
    slm
}
