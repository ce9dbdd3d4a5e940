//! Tells the service worker which files belong to this build, and page and worker its name.
//!
//! `public/sw.js` has two placeholders, each once: `/*PRECACHE*/[]` becomes the list of all files
//! by address, and `"/*BUILD*/"` the name of the build, a hash over all of them. So a change of
//! any file changes the service worker, and the browser notices. The page and the worker's script
//! have the name's placeholder too: a page and a worker of two builds tell each other apart.

use std::fs;
use std::path::Path;

use crate::error::{Result, XtaskError};
use crate::stamp::{self, Fingerprint};

const FILE: &str = "sw.js";
/// These are told the build's name and nothing else.
const NAMED: [&str; 2] = ["index.html", "worker.js"];
const LIST: &str = "/*PRECACHE*/[]";
const BUILD: &str = "\"/*BUILD*/\"";
/// Hexadecimal digits of the hash that make a build's name.
const BUILD_DIGITS: usize = 16;

/// Fills the placeholders of `dist/sw.js`; all other files must lie there already.
pub fn inject(dist: &Path) -> Result<()> {
    let path = dist.join(FILE);
    let text = fs::read_to_string(&path).map_err(XtaskError::io(&path))?;
    let mut inputs = Fingerprint::default();
    inputs.add_text(&text);
    let mut addresses = Vec::new();
    for file in stamp::files_under(dist)? {
        let address = stamp::slashed(dist, &file);
        if address == FILE || address.starts_with('.') {
            continue;
        }
        inputs.add_path(dist, &address)?;
        addresses.push(address);
    }
    let build = inputs.finish().to_string();
    let build = &build[..BUILD_DIGITS];
    let text = filled(&text, &addresses, build).map_err(faulty(&path))?;
    fs::write(&path, text).map_err(XtaskError::io(&path))?;
    for name in NAMED {
        let path = dist.join(name);
        let text = fs::read_to_string(&path).map_err(XtaskError::io(&path))?;
        let text = named(&text, build).map_err(faulty(&path))?;
        fs::write(&path, text).map_err(XtaskError::io(&path))?;
    }
    println!("build {build}: {} files", addresses.len());
    Ok(())
}

fn faulty(file: &Path) -> impl FnOnce((&'static str, usize)) -> XtaskError {
    let file = file.to_owned();
    move |(placeholder, found)| XtaskError::Placeholder {
        file,
        placeholder,
        found,
    }
}

/// The text with the build's name, or how often its place stands there if not once.
fn named(text: &str, build: &str) -> std::result::Result<String, (&'static str, usize)> {
    match text.matches(BUILD).count() {
        1 => Ok(text.replace(BUILD, &format!("\"{build}\""))),
        found => Err((BUILD, found)),
    }
}

/// The text with both placeholders filled, or the placeholder that does not stand there once.
fn filled(
    text: &str,
    addresses: &[String],
    build: &str,
) -> std::result::Result<String, (&'static str, usize)> {
    let found = text.matches(LIST).count();
    if found != 1 {
        return Err((LIST, found));
    }
    let quoted: Vec<String> = addresses
        .iter()
        .map(|address| serde_json::Value::from(address.as_str()).to_string())
        .collect();
    let list = format!("[{}]", quoted.join(","));
    named(&text.replace(LIST, &list), build)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "const FILES = /*PRECACHE*/[];\nconst BUILD = \"/*BUILD*/\";\n";

    fn dist(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for name in NAMED {
            fs::write(folder.path().join(name), "build=\"/*BUILD*/\"").unwrap();
        }
        folder
    }

    fn injected(files: &[(&str, &str)]) -> String {
        let folder = dist(files);
        inject(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        for name in NAMED {
            let named = fs::read_to_string(folder.path().join(name)).unwrap();
            let build = named.strip_prefix("build=").unwrap();
            assert!(text.contains(&format!("const BUILD = {build};")), "{named}");
        }
        text
    }

    #[test]
    fn the_list_names_all_files_but_the_service_worker() {
        let text = injected(&[
            ("sw.js", TEXT),
            ("b.js", "1"),
            ("a/c.wasm", "2"),
            (".stamp", "3"),
        ]);
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            r#"const FILES = ["a/c.wasm","b.js","index.html","worker.js"];"#
        );
        assert!(!text.contains("BUILD*/"));
    }

    #[test]
    fn the_build_changes_with_any_file() {
        let one = injected(&[("sw.js", TEXT), ("b.js", "1")]);
        assert_eq!(
            one,
            injected(&[("sw.js", TEXT), ("b.js", "1"), (".stamp", "3")])
        );
        assert_ne!(one, injected(&[("sw.js", TEXT), ("b.js", "2")]));
        let changed = format!("{TEXT}\n");
        assert_ne!(one, injected(&[("sw.js", &changed), ("b.js", "1")]));
    }

    #[test]
    fn a_missing_or_doubled_placeholder_is_an_error() {
        for (text, want) in [("", (LIST, 0)), (LIST, (BUILD, 0))] {
            assert_eq!(filled(text, &[], "x"), Err(want));
        }
        let doubled = format!("{TEXT}{TEXT}");
        assert_eq!(filled(&doubled, &[], "x"), Err((LIST, 2)));
    }
}
