//! What the finished app weighs.

use std::fs;
use std::path::Path;

use crate::error::{Result, XtaskError};
use crate::stamp;

/// Prints every file's bytes, largest first, and their sum.
pub fn print(dist: &Path) -> Result<()> {
    let mut sizes = Vec::new();
    for file in stamp::files_under(dist)? {
        let bytes = fs::metadata(&file).map_err(XtaskError::io(&file))?.len();
        sizes.push((bytes, stamp::slashed(dist, &file)));
    }
    sizes.sort_by(|a, b| b.cmp(a));
    for (bytes, name) in &sizes {
        println!("{bytes:>10}  {name}");
    }
    let sum: u64 = sizes.iter().map(|(bytes, _)| bytes).sum();
    println!("{sum:>10}  all {} files", sizes.len());
    Ok(())
}
