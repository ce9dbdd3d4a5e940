//! Whether anything that goes into a result has changed since the result was made.
//!
//! Cargo answers that for what it compiles, but asking it takes a second per flag set. One hash
//! over the sources answers it for all in a few milliseconds.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Result, XtaskError};

/// Not served and not part of the build id.
pub const STAMP_FILE: &str = ".stamp";

/// A hash over names and bytes, in the order in which they were added.
#[derive(Default)]
pub struct Fingerprint(Sha256);

impl Fingerprint {
    pub fn add_text(&mut self, text: &str) {
        self.add(text, text.as_bytes());
    }

    /// Adds a file, or every file under a folder in order of path; nothing if it is not there.
    pub fn add_path(&mut self, root: &Path, path: &str) -> Result<()> {
        for file in files_under(&root.join(path))? {
            let bytes = fs::read(&file).map_err(XtaskError::io(&file))?;
            self.add(&slashed(root, &file), &bytes);
        }
        Ok(())
    }

    pub fn finish(self) -> format::Digest {
        format::Digest(self.0.finalize().into())
    }

    fn add(&mut self, name: &str, bytes: &[u8]) {
        // Lengths first: no two lists of files run together into the same bytes.
        self.0.update((name.len() as u64).to_le_bytes());
        self.0.update(name);
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

/// Whether `folder` was made from exactly these inputs.
pub fn is_current(folder: &Path, inputs: format::Digest) -> bool {
    fs::read_to_string(folder.join(STAMP_FILE)).is_ok_and(|text| text == inputs.to_string())
}

/// Call last: a folder without a stamp is unfinished.
pub fn write(folder: &Path, inputs: format::Digest) -> Result<()> {
    let path = folder.join(STAMP_FILE);
    fs::write(&path, inputs.to_string()).map_err(XtaskError::io(&path))
}

/// All files under a path (the path itself if it is a file), sorted; empty if there is none.
pub fn files_under(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    files_under_but(path, &[])
}

/// All files under a folder but those under `skipped`, which are paths below it; sorted.
pub fn files_under_but(path: &Path, skipped: &[&str]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let entry = entry.map_err(XtaskError::io(&folder))?.path();
            match entry.is_dir() {
                true if skipped.contains(&slashed(path, &entry).as_str()) => {}
                true => folders.push(entry),
                false => files.push(entry),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A path below `root` with forward slashes.
pub fn slashed(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    below.to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> format::Digest {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut fingerprint = Fingerprint::default();
        fingerprint.add_path(folder.path(), "src").unwrap();
        fingerprint.finish()
    }

    #[test]
    fn every_name_and_byte_counts() {
        let base = of(&[("src/a", "1"), ("src/b/c", "2")]);
        assert_eq!(
            base,
            of(&[("src/b/c", "2"), ("src/a", "1"), ("other", "3")])
        );
        assert_ne!(base, of(&[("src/a", "1"), ("src/b/c", "3")]));
        assert_ne!(base, of(&[("src/a", "1"), ("src/b/d", "2")]));
        assert_ne!(base, of(&[("src/a", "1")]));
        assert_ne!(of(&[("src/a", "1b")]), of(&[("src/a1", "b")]));
    }

    #[test]
    fn a_folder_without_stamp_is_stale() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (of(&[("src/a", "1")]), of(&[("src/a", "2")]));
        assert!(!is_current(folder.path(), one));
        write(folder.path(), one).unwrap();
        assert!(is_current(folder.path(), one));
        assert!(!is_current(folder.path(), two));
    }
}
