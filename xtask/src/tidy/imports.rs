//! Rooms import from lower rows only, and only where the table says so.

use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

use super::Finding;
use crate::error::{Result, XtaskError};

/// A dependency of one of our crates on another.
#[derive(Debug)]
pub struct Edge {
    pub from: String,
    pub to: String,
    /// Only for tests.
    pub dev: bool,
    /// As in `[target.'...'.dependencies]`.
    pub target: Option<String>,
}

struct Room {
    name: &'static str,
    /// 1 is the lowest.
    row: u8,
    imports: &'static [&'static str],
}

const ROOMS: &[Room] = &[
    Room {
        name: "format",
        row: 1,
        imports: &[],
    },
    Room {
        name: "protocol",
        row: 2,
        imports: &["format"],
    },
    Room {
        name: "convert",
        row: 3,
        imports: &["format"],
    },
    Room {
        name: "prompt",
        row: 3,
        imports: &["format"],
    },
    Room {
        name: "runtime",
        row: 3,
        imports: &["format", "protocol"],
    },
    Room {
        name: "store",
        row: 3,
        imports: &["format"],
    },
    Room {
        name: "p2p",
        row: 3,
        imports: &["format"],
    },
    Room {
        name: "worker",
        row: 4,
        imports: &["format", "protocol", "store", "p2p", "convert", "prompt"],
    },
    Room {
        name: "app",
        row: 5,
        imports: &["format", "protocol", "p2p"],
    },
    Room {
        name: "cli",
        row: 5,
        imports: &[
            "format", "protocol", "convert", "prompt", "runtime", "store", "p2p",
        ],
    },
    Room {
        name: "xtask",
        row: 5,
        imports: &["format", "protocol"],
    },
    Room {
        name: "e2e",
        row: 6,
        imports: &[],
    },
    Room {
        name: "bench",
        row: 7,
        imports: &["format", "protocol", "e2e"],
    },
];

/// In the browser the worker loads the engine as a module of its own; it must not link it.
const NATIVE_ONLY: (&str, &str, &str) = ("worker", "runtime", "cfg(not(target_arch = \"wasm32\"))");

/// All dependencies between our own crates.
pub fn edges(root: &Path) -> Result<Vec<Edge>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .map_err(|error| XtaskError::Metadata {
            words: error.to_string(),
        })?;
    let mut edges = Vec::new();
    for package in &metadata.packages {
        for dependency in package.dependencies.iter().filter(|d| d.path.is_some()) {
            edges.push(Edge {
                from: package.name.to_string(),
                to: dependency.name.clone(),
                dev: dependency.kind == DependencyKind::Development,
                target: dependency.target.as_ref().map(ToString::to_string),
            });
        }
    }
    Ok(edges)
}

pub fn check(edges: &[Edge]) -> Vec<Finding> {
    edges
        .iter()
        .filter(|edge| !is_allowed(edge))
        .map(|edge| {
            let words = format!("{} may not import {}", edge.from, edge.to);
            Finding::new(&format!("{}/Cargo.toml", edge.from), 0, words)
        })
        .collect()
}

fn is_allowed(edge: &Edge) -> bool {
    let room = |name: &str| ROOMS.iter().find(|room| room.name == name);
    let (Some(from), Some(to)) = (room(&edge.from), room(&edge.to)) else {
        return false;
    };
    let (worker, runtime, native) = NATIVE_ONLY;
    if (from.name, to.name) == (worker, runtime) && !edge.dev {
        return edge.target.as_deref() == Some(native);
    }
    // A test may hold two subjects against each other, and switch on a feature of its own room.
    let tested_together = edge.dev && to.row <= from.row;
    from.imports.contains(&to.name) || tested_together
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_fine(from: &str, to: &str, dev: bool, target: Option<&str>) -> bool {
        let edge = Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            dev,
            target: target.map(str::to_owned),
        };
        check(&[edge]).is_empty()
    }

    #[test]
    fn upward_and_sideways_imports_are_found() {
        assert!(is_fine("convert", "format", false, None));
        assert!(!is_fine("format", "protocol", false, None));
        assert!(!is_fine("convert", "store", false, None));
        assert!(!is_fine("app", "worker", false, None));
        assert!(!is_fine("prompt", "stranger", false, None));
    }

    #[test]
    fn tests_may_import_sideways_but_not_upward() {
        assert!(is_fine("runtime", "convert", true, None));
        assert!(!is_fine("runtime", "worker", true, None));
    }

    #[test]
    fn the_worker_links_the_engine_natively_only() {
        let native = "cfg(not(target_arch = \"wasm32\"))";
        assert!(is_fine("worker", "runtime", false, Some(native)));
        assert!(!is_fine("worker", "runtime", false, None));
    }

    #[test]
    fn a_finding_names_both_rooms() {
        let edge = Edge {
            from: "app".to_owned(),
            to: "worker".to_owned(),
            dev: false,
            target: None,
        };
        let want = Finding::new("app/Cargo.toml", 0, "app may not import worker");
        assert_eq!(check(&[edge]), [want]);
    }
}
