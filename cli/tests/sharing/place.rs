//! A folder with a model, and what a person does there.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::path::PathBuf;

use tempfile::TempDir;

use crate::programs::{Running, model, program};

/// Only loopback: the tests of one machine are nobody else's business.
pub const HERE: [&str; 2] = ["--listen", "127.0.0.1"];

pub struct Place {
    pub folder: TempDir,
    pub slm: PathBuf,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let slm = model(folder.path(), 1);
        Place { folder, slm }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn seed(&self, more: &[&str]) -> Running {
        Running::start(program().arg("seed").arg(&self.slm).args(HERE).args(more))
    }

    pub fn fetch(&self, link: &str, to: &str) -> Running {
        let to = self.path(to);
        Running::start(program().args(["fetch", link]).args(HERE).arg("-o").arg(to))
    }

    /// The app is a page that says nothing; the tracker and the models are real.
    pub fn serve(&self, more: &[&str]) -> (Running, String) {
        let app = self.path("app");
        std::fs::create_dir_all(&app).unwrap();
        std::fs::write(app.join("index.html"), "").unwrap();
        let mut command = program();
        command
            .arg("serve")
            .arg("--app")
            .arg(&app)
            .args(["--port", "0"])
            .args(more);
        let mut server = Running::start(&mut command);
        let host = server.wait_for("TinyRustLM is at http://");
        (server, host)
    }

    #[track_caller]
    pub fn is_the_same(&self, name: &str) {
        let (got, sent) = (self.path(name), &self.slm);
        assert!(std::fs::read(got).unwrap() == std::fs::read(sent).unwrap());
    }

    pub fn length(&self) -> u64 {
        std::fs::metadata(&self.slm).unwrap().len()
    }
}
