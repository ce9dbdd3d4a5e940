//! The browser engines, their drivers, and what a driver must be told to start its browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::error::{E2eError, Result};
use crate::screen::Screen;

/// Scripts may wait for a model.
const SCRIPT_TIMEOUT_MS: u64 = 600_000;
/// Where distributions put WebKitGTK's smallest browser, which is in no PATH.
const WEBKIT_FOLDERS: [&str; 4] = [
    "/usr/lib",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local/libexec",
];

/// Which browser; the variable `E2E_BROWSER` chooses where a test does not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Engine {
    Chromium,
    Firefox,
    /// MiniBrowser: no private file system, no shared memory, no relaxed vectors. It remembers
    /// nothing from one start to the next.
    WebKit,
}

impl Engine {
    pub fn chosen() -> Engine {
        match std::env::var("E2E_BROWSER").as_deref() {
            Ok("firefox") => Engine::Firefox,
            Ok("webkit") => Engine::WebKit,
            _ => Engine::Chromium,
        }
    }

    /// Whether a lane that requires these features can run here. All other features are taken for
    /// granted, so that a browser that loses one fails a test.
    pub fn has(self, features: &[&str]) -> bool {
        let missing: &[&str] = match self {
            Engine::Chromium | Engine::Firefox => &[],
            // It knows the instructions of threads, but has no memory to share.
            Engine::WebKit => &["atomics", "relaxed-simd"],
        };
        !features.iter().any(|feature| missing.contains(feature))
    }

    /// The driver, listening on a port.
    pub(crate) fn driver(self, port: u16) -> Command {
        let mut command = Command::new(match self {
            Engine::Chromium => "chromedriver",
            Engine::Firefox => "geckodriver",
            Engine::WebKit => "WebKitWebDriver",
        });
        command.arg(format!("--port={port}"));
        if self == Engine::Firefox {
            // Otherwise a fixed port, which another driver may have.
            command.arg("--websocket-port=0");
        }
        command
    }

    /// A screen for a browser that cannot be without one.
    pub(crate) fn screen(self) -> Result<Option<Screen>> {
        match self {
            Engine::Chromium | Engine::Firefox => Ok(None),
            Engine::WebKit => Screen::start().map(Some),
        }
    }

    pub(crate) fn capabilities(self, profile: &Path) -> Result<Map<String, Value>> {
        let mut wanted = Map::new();
        wanted.insert("timeouts".into(), json!({ "script": SCRIPT_TIMEOUT_MS }));
        let (name, key, mut options) = match self {
            Engine::Chromium => ("chrome", "goog:chromeOptions", chromium(profile)),
            Engine::Firefox => {
                let arguments = json!(["-headless", "-profile", profile]);
                (
                    "firefox",
                    "moz:firefoxOptions",
                    json!({ "args": arguments }),
                )
            }
            Engine::WebKit => {
                let arguments = json!(["--automation"]);
                let options = json!({ "args": arguments });
                ("MiniBrowser", "webkitgtk:browserOptions", options)
            }
        };
        // Debian's names; the drivers look for others.
        let program = match self {
            Engine::Chromium => on_path("chromium"),
            Engine::Firefox => on_path("firefox-esr"),
            Engine::WebKit => Some(mini_browser()?),
        };
        if let Some(program) = program {
            options["binary"] = json!(program);
        }
        wanted.insert("browserName".into(), json!(name));
        wanted.insert(key.into(), options);
        Ok(wanted)
    }
}

fn chromium(profile: &Path) -> Value {
    let arguments = [
        "--headless=new".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-quic".to_owned(),
        "--no-first-run".to_owned(),
        "--disable-background-networking".to_owned(),
        "--disable-component-update".to_owned(),
        "--disable-sync".to_owned(),
        "--window-size=1200,900".to_owned(),
        format!("--user-data-dir={}", profile.display()),
    ];
    json!({ "args": arguments })
}

/// `FOLDER/[ARCHITECTURE/]webkit2gtk-VERSION/MiniBrowser`, the greatest version first.
fn mini_browser() -> Result<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let is_webkit = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("webkit2gtk-") || name.starts_with("webkitgtk-")
    };
    let is_triplet = |path: &PathBuf| path.to_string_lossy().ends_with("-linux-gnu");
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in WEBKIT_FOLDERS {
        let direct = entries(Path::new(folder));
        let nested = direct.iter().filter(|path| is_triplet(path));
        let nested: Vec<PathBuf> = nested.flat_map(|path| entries(path)).collect();
        let versions = direct.into_iter().chain(nested).filter(is_webkit);
        found.extend(versions.map(|version| version.join("MiniBrowser")));
    }
    found.retain(|program| program.is_file());
    found.sort();
    found.pop().ok_or(E2eError::Missing {
        path: PathBuf::from("MiniBrowser of WebKitGTK"),
        made_by: "scripts/setup tests",
    })
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}
