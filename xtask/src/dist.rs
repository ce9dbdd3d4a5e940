//! Everything the browser needs, as one folder of static files.

use std::fs;
use std::path::Path;

use crate::error::{Result, XtaskError};
use crate::keys::Key;
use crate::places::Places;
use crate::stamp::{self, Fingerprint};
use crate::toolchain::WasmToolchain;
use crate::{bindings, lanes, precache, published, sizes};

/// What goes into the app besides [`lanes::SOURCES`].
const SOURCES: &[&str] = &["convert", "prompt", "store", "p2p", "worker", "app"];
/// Copied as they are: pages, scripts and icons, then the looks.
const STATIC_FOLDERS: &[&str] = &["public", "styles"];

/// Builds the app into `out`, unless nothing that goes into it has changed.
///
/// The parts are put together beside `out` and moved there at the end, so a failed build leaves
/// the old app as it was.
pub fn build(places: &Places, out: &Path) -> Result<()> {
    let toolchain = WasmToolchain::find()?;
    let key = Key::find(places)?;
    let inputs = inputs(places, &toolchain, &key)?;
    if stamp::is_current(out, inputs) {
        println!("the app is up to date: {}", out.display());
        return Ok(());
    }
    let new = out.with_extension("new");
    remove(&new)?;
    lanes::build(places, &key, &new.join("lanes"))?;
    for module in bindings::MODULES {
        bindings::build(places, &toolchain, &key, module, &new)?;
    }
    for folder in STATIC_FOLDERS {
        copy(&places.root.join(folder), &new)?;
    }
    published::sign(places, &key, &new)?;
    precache::inject(&new)?;
    stamp::write(&new, inputs)?;
    remove(out)?;
    fs::rename(&new, out).map_err(XtaskError::io(out))?;
    sizes::print(out)
}

fn inputs(places: &Places, toolchain: &WasmToolchain, key: &Key) -> Result<format::Digest> {
    let mut inputs = Fingerprint::default();
    inputs.add_text(&toolchain.version);
    inputs.add_text(&key.public_hex());
    for source in lanes::SOURCES.iter().chain(STATIC_FOLDERS) {
        inputs.add_path(&places.root, source)?;
    }
    inputs.add_path(&places.root, published::FILE)?;
    for room in SOURCES {
        inputs.add_path(&places.root, &format!("{room}/src"))?;
        inputs.add_path(&places.root, &format!("{room}/Cargo.toml"))?;
    }
    Ok(inputs.finish())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for file in stamp::files_under(from)? {
        let target = to.join(stamp::slashed(from, &file));
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(XtaskError::io(folder))?;
        }
        fs::copy(&file, &target).map_err(XtaskError::io(&file))?;
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(XtaskError::io(folder))?;
    }
    Ok(())
}
