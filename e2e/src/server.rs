//! `tinyrustlm serve`, with a folder of models and a log of requests.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::error::{E2eError, Result};
use crate::places;
use crate::process::{Guard, free_port};

/// How to serve; the default is the app with the default model.
#[derive(Clone, Default)]
pub struct Options {
    /// Bytes a second.
    pub throttle: Option<u64>,
    pub no_isolation_headers: bool,
    /// Another folder than the finished app's.
    pub app: Option<PathBuf>,
    /// Another folder of models than the one with the default model.
    pub models: Option<PathBuf>,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub method: String,
    pub path: String,
    /// First and last byte of the `Range` asked for.
    pub range: Option<(u64, u64)>,
    pub status: u64,
}

pub struct Server {
    /// `host:port`.
    pub host: String,
    port: u16,
    options: Options,
    log: PathBuf,
    folder: TempDir,
    guard: Option<Guard>,
}

impl Server {
    pub fn start(options: Options) -> Result<Server> {
        let temp = std::env::temp_dir();
        let folder = tempfile::tempdir().map_err(E2eError::io(&temp))?;
        let port = free_port()?;
        let mut server = Server {
            host: format!("127.0.0.1:{port}"),
            port,
            options,
            log: folder.path().join("requests.jsonl"),
            folder,
            guard: None,
        };
        server.start_again()?;
        Ok(server)
    }

    /// `http://host:port/` and a path below it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.host)
    }

    pub fn stop(&mut self) {
        self.guard = None;
    }

    /// On the same port, so that the browser sees the same origin.
    pub fn start_again(&mut self) -> Result<()> {
        let program = places::tinyrustlm()?;
        let models = match &self.options.models {
            Some(folder) => folder.clone(),
            None => self.default_models()?,
        };
        let mut command = Command::new(&program);
        let app = match &self.options.app {
            Some(folder) => folder.clone(),
            None => places::dist()?,
        };
        command.arg("serve").arg("--app").arg(app);
        command.arg("--models").arg(models);
        command.args(["--port", &self.port.to_string()]);
        command.arg("--log").arg(&self.log);
        if let Some(rate) = self.options.throttle {
            command.args(["--throttle", &rate.to_string()]);
        }
        if self.options.no_isolation_headers {
            command.arg("--no-isolation-headers");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut guard = Guard::start(&mut command)?;
        self.wait_until_it_listens(&program, &mut guard)?;
        self.guard = Some(guard);
        Ok(())
    }

    /// All requests since the first start.
    pub fn log(&self) -> Result<Vec<Line>> {
        let text = std::fs::read_to_string(&self.log).map_err(E2eError::io(&self.log))?;
        text.lines().map(line).collect()
    }

    /// The whole folder of models is not offered: other programs may write there meanwhile.
    fn default_models(&self) -> Result<PathBuf> {
        let folder = self.folder.path().join("models");
        let slm = places::model_slm()?;
        let name = slm.file_name().unwrap_or_default();
        let link = folder.join(name);
        if !link.exists() {
            std::fs::create_dir_all(&folder).map_err(E2eError::io(&folder))?;
            std::os::unix::fs::symlink(&slm, &link).map_err(E2eError::io(&link))?;
        }
        Ok(folder)
    }

    /// It says where it is once it listens; the rest of what it says is passed on.
    fn wait_until_it_listens(&self, program: &Path, guard: &mut Guard) -> Result<()> {
        let mut said = String::new();
        let Some(output) = guard.child().stdout.take() else {
            return Ok(());
        };
        let mut output = BufReader::new(output);
        while !said.contains(&self.host) {
            let read = output.read_line(&mut said).map_err(E2eError::io(program))?;
            if read == 0 {
                return Err(E2eError::Silent {
                    program: program.to_owned(),
                    said,
                });
            }
        }
        // A full pipe would stop the server.
        std::thread::spawn(move || output.lines().for_each(drop));
        Ok(())
    }
}

fn line(text: &str) -> Result<Line> {
    let shape = || E2eError::Shape {
        what: "a line of the server's log",
        found: text.to_owned(),
    };
    let value: Value = serde_json::from_str(text).map_err(|_| shape())?;
    let word = |key: &str| value[key].as_str().map(str::to_owned);
    Ok(Line {
        method: word("method").ok_or_else(shape)?,
        path: word("path").ok_or_else(shape)?,
        range: word("range").as_deref().and_then(range),
        status: value["status"].as_u64().ok_or_else(shape)?,
    })
}

/// `bytes=0-1048575`.
fn range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_log() {
        let text = r#"{"method":"GET","path":"/a","range":"bytes=5-9","status":206}"#;
        let read = line(text).unwrap();
        assert_eq!(
            (read.path.as_str(), read.range, read.status),
            ("/a", Some((5, 9)), 206)
        );
        let plain = line(r#"{"method":"GET","path":"/","range":null,"status":200}"#).unwrap();
        assert_eq!(plain.range, None);
        assert!(line("{}").is_err());
    }
}
