//! The publisher's Ed25519 key, which signs the manifest of the lanes.
//!
//! A key is a file of 64 hexadecimal digits that only its owner can read. The variable
//! `TINYRUSTLM_SIGNING_KEY` names it; without the variable, a key for this machine alone is made
//! once, outside the checkout. The worker is compiled with the public half.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ed25519_dalek::{Signer, SigningKey};
use protocol::Signature;

use crate::error::{Result, XtaskError};
use crate::places::Places;

/// Names the file of the key.
const FILE_VARIABLE: &str = "TINYRUSTLM_SIGNING_KEY";
/// What the worker's source reads when it is compiled.
pub const PUBLIC_VARIABLE: &str = "TINYRUSTLM_PUBLIC_KEY";

pub struct Key(SigningKey);

impl Key {
    /// The publisher's key, or this machine's.
    pub fn find(places: &Places) -> Result<Key> {
        if let Some(path) = std::env::var_os(FILE_VARIABLE) {
            return Key::read(&PathBuf::from(path));
        }
        let path = places.machine_key();
        if !path.exists() {
            Key::make(&path)?;
        }
        Key::read(&path)
    }

    /// Writes a new key where there is none.
    pub fn make(path: &Path) -> Result<()> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| XtaskError::Random {
            words: error.to_string(),
        })?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(XtaskError::io(folder))?;
        }
        let mut file = match create_private(path) {
            // Another build was faster, and its key is as good.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            made => made.map_err(XtaskError::io(path))?,
        };
        let text = format!("{}\n", format::Digest(seed));
        file.write_all(text.as_bytes())
            .map_err(XtaskError::io(path))?;
        println!("made a signing key: {}", path.display());
        Ok(())
    }

    fn read(path: &Path) -> Result<Key> {
        let unusable = || XtaskError::SigningKey {
            path: path.to_owned(),
        };
        let text = fs::read_to_string(path).map_err(|_| unusable())?;
        let seed = format::Digest::from_hex(text.trim()).ok_or_else(unusable)?;
        Ok(Key(SigningKey::from_bytes(&seed.0)))
    }

    /// 64 lower-case hexadecimal digits.
    pub fn public_hex(&self) -> String {
        format::Digest(self.0.verifying_key().to_bytes()).to_string()
    }

    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message).to_bytes())
    }
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys/one");
        Key::make(&path).unwrap();
        let first = Key::read(&path).unwrap().public_hex();
        Key::make(&path).unwrap();
        assert_eq!(Key::read(&path).unwrap().public_hex(), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::write(&path, "short").unwrap();
        assert!(matches!(
            Key::read(&path),
            Err(XtaskError::SigningKey { .. })
        ));
    }

    /// RFC 8032, section 7.1, test 2.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let secret = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
        fs::write(&path, secret).unwrap();
        let key = Key::read(&path).unwrap();
        let public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        assert_eq!(key.public_hex(), public);
        assert_eq!(
            key.sign(&[0x72]).to_string(),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
             085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        );
    }
}
