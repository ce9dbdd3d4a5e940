//! The file in which failures of earlier visits stand.
//!
//! It is open for as long as the worker lives, so that a failure is written at once. Where there
//! is no private file system, failures are remembered until the worker ends.

use std::cell::RefCell;

use format::Digest;
use store::later::LaterCatalog;
use store::opfs::{OpfsCatalog, OpfsDisk};
use store::{Disk, StoreError};

use crate::lane::{FAILURES_BYTES_MAX, Failures};

/// Beside the directory of models, whose strays are removed.
const DIRECTORY: &str = "engine";
const FILE: &str = "failures.json";

pub struct Remembered {
    /// The browser as it names itself, version included.
    browser: String,
    failures: RefCell<Failures>,
    file: RefCell<Option<OpfsDisk>>,
}

impl Remembered {
    pub async fn open(browser: String) -> Remembered {
        let file = open_file().await.ok();
        let failures = file.as_ref().and_then(|file| read(file).ok());
        Remembered {
            browser,
            failures: RefCell::new(failures.unwrap_or_default()),
            file: RefCell::new(file),
        }
    }

    pub fn browser(&self) -> &str {
        &self.browser
    }

    /// What went wrong with this build before.
    pub fn of(&self, artifact: Digest) -> Option<String> {
        let failures = self.failures.borrow();
        failures.of(artifact, &self.browser).map(str::to_owned)
    }

    pub fn add(&self, artifact: Digest, what: String) {
        self.change(|failures| failures.add(artifact, &self.browser, what));
    }

    /// Forgets other versions of the browser and other builds than these.
    pub fn keep_current(&self, artifacts: &[Digest]) {
        self.change(|failures| failures.keep_current(&self.browser, artifacts));
    }

    pub fn clear(&self) {
        self.change(Failures::clear);
    }

    fn change(&self, change: impl FnOnce(&mut Failures)) {
        let mut failures = self.failures.borrow_mut();
        let before = failures.clone();
        change(&mut failures);
        if *failures == before {
            return;
        }
        if let Some(file) = self.file.borrow_mut().as_mut() {
            // Unwritten, the failure is remembered until the worker ends; that must do then.
            write(file, &failures.to_bytes()).ok();
        }
    }
}

async fn open_file() -> Result<OpfsDisk, StoreError> {
    let directory = OpfsCatalog::at(DIRECTORY).await?;
    match directory.open(FILE).await {
        Err(StoreError::NotFound { .. }) => directory.create(FILE).await,
        opened => opened,
    }
}

fn read(file: &OpfsDisk) -> Result<Failures, StoreError> {
    let len = file.len()?.min(FAILURES_BYTES_MAX);
    let mut bytes = vec![0; len as usize];
    file.read_at(0, &mut bytes)?;
    Ok(Failures::parse(&bytes))
}

fn write(file: &mut OpfsDisk, bytes: &[u8]) -> Result<(), StoreError> {
    file.set_len(0)?;
    file.write_at(0, bytes)?;
    file.flush()
}
