//! Where things lie: the checkout, the build folders, the results.

use std::env;
use std::path::{Path, PathBuf};

use crate::error::{Result, XtaskError};

/// Folders of one checkout on one machine.
pub struct Places {
    /// The checkout.
    pub root: PathBuf,
    /// Build folders of all compilers, outside the checkout unless the person says otherwise.
    pub target: PathBuf,
}

impl Places {
    /// # Errors
    /// The checkout has moved since this program was built.
    pub fn find() -> Result<Places> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.join("..");
        let root = root.canonicalize().map_err(XtaskError::io(&root))?;
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => root.join(folder),
            None => cache().map_or_else(|| root.join("target"), |cache| cache.join("target")),
        };
        Ok(Places { root, target })
    }

    /// The finished app.
    pub fn dist(&self) -> PathBuf {
        self.root.join("dist")
    }

    /// Lanes that carry the kernel suite; the browser tests look here.
    pub fn suite_lanes(&self) -> PathBuf {
        self.target.join("suite-lanes")
    }

    /// The key that signs where no publisher's key is named.
    pub fn machine_key(&self) -> PathBuf {
        cache()
            .unwrap_or_else(|| self.target.clone())
            .join("signing.key")
    }

    /// Build folder of one set of compiler flags, so that no set evicts another's artifacts.
    pub fn wasm_target(&self, flags: &str) -> PathBuf {
        self.target.join("wasm").join(flags)
    }
}

/// The folder that `scripts/environment` names as well.
fn cache() -> Option<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder),
        _ => PathBuf::from(env::var_os("HOME")?).join(".cache"),
    };
    Some(base.join("tinyrustlm"))
}
