//! What can be asked of `cargo xtask`.

use std::path::PathBuf;

use crate::error::{Result, XtaskError};
use crate::keys::Key;
use crate::places::Places;
use crate::{dist, lanes, lint, sizes, tidy};

const HELP: &str = "\
cargo xtask COMMAND

  dist [--out DIR]             everything the browser needs, in DIR (dist)
  lanes [--suite] [--out DIR]  only the engine, once per row of the table of lanes;
                               --suite adds the kernel suite for the browser tests
  lanes --verify-reproducible [LANE]
                               builds each lane from two clones and compares the bytes
  key --out FILE               a new key to sign with
  sizes [--out DIR]            what the files in DIR weigh
  lint                         clippy for the code that only the browser compiles
  tidy                         the house rules";

#[derive(Debug, PartialEq)]
enum Command {
    Dist { out: Option<PathBuf> },
    Lanes { suite: bool, out: Option<PathBuf> },
    Verify { lane: Option<String> },
    Key { out: PathBuf },
    Sizes { out: Option<PathBuf> },
    Lint,
    Tidy,
    Help,
}

/// Carries out the command that the words name.
pub fn run(words: &[String]) -> Result<()> {
    let command = parse(words)?;
    let places = Places::find()?;
    match command {
        Command::Dist { out } => dist::build(&places, &out.unwrap_or_else(|| places.dist())),
        Command::Lanes { suite: true, out } => {
            lanes::build_suite(&places, &out.unwrap_or_else(|| places.suite_lanes()))
        }
        Command::Lanes { suite: false, out } => {
            let out = out.unwrap_or_else(|| places.dist().join("lanes"));
            lanes::build(&places, &Key::find(&places)?, &out)
        }
        Command::Verify { lane } => lanes::verify_reproducible(&places, lane.as_deref()),
        Command::Key { out } => Key::make(&out),
        Command::Sizes { out } => sizes::print(&out.unwrap_or_else(|| places.dist())),
        Command::Lint => lint::run(&places),
        Command::Tidy => tidy::check_and_print(&places.root),
        Command::Help => {
            println!("{HELP}");
            Ok(())
        }
    }
}

fn parse(words: &[String]) -> Result<Command> {
    let mut words = words.iter().map(String::as_str);
    let name = words.next().unwrap_or("--help");
    let mut suite = false;
    let mut out = None;
    let mut verify = None;
    while let Some(word) = words.next() {
        match word {
            "--suite" if name == "lanes" => suite = true,
            "--verify-reproducible" if name == "lanes" && out.is_none() => {
                verify = Some(words.next().map(str::to_owned));
            }
            "--out" if !["lint", "tidy"].contains(&name) => {
                let folder = words.next().ok_or_else(|| usage("--out names no folder"))?;
                out = Some(PathBuf::from(folder));
            }
            _ => return Err(usage(word)),
        }
    }
    match name {
        "lanes" if verify.is_some() => match (verify, suite) {
            (Some(lane), false) => Ok(Command::Verify { lane }),
            _ => Err(usage("--suite")),
        },
        "key" => match out {
            Some(out) => Ok(Command::Key { out }),
            None => Err(usage("key without --out")),
        },
        "dist" => Ok(Command::Dist { out }),
        "lanes" => Ok(Command::Lanes { suite, out }),
        "sizes" => Ok(Command::Sizes { out }),
        "lint" => Ok(Command::Lint),
        "tidy" => Ok(Command::Tidy),
        "help" | "--help" | "-h" => Ok(Command::Help),
        _ => Err(usage(name)),
    }
}

fn usage(word: &str) -> XtaskError {
    XtaskError::Usage {
        word: word.to_owned(),
        help: HELP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, want: Option<Command>) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(parse(&words).ok(), want, "{line}");
    }

    #[test]
    fn command_lines() {
        let place = || Some(PathBuf::from("x"));
        check("", Some(Command::Help));
        check("dist", Some(Command::Dist { out: None }));
        check("dist --out x", Some(Command::Dist { out: place() }));
        check(
            "lanes --suite --out x",
            Some(Command::Lanes {
                suite: true,
                out: place(),
            }),
        );
        check("sizes", Some(Command::Sizes { out: None }));
        check("tidy", Some(Command::Tidy));
        check("lint", Some(Command::Lint));
        check(
            "key --out x",
            Some(Command::Key {
                out: place().unwrap(),
            }),
        );
        let verify = |lane: Option<&str>| {
            let lane = lane.map(str::to_owned);
            Some(Command::Verify { lane })
        };
        check("lanes --verify-reproducible", verify(None));
        check("lanes --verify-reproducible a", verify(Some("a")));
        check("lanes --verify-reproducible a b", None);
        check("lanes --suite --verify-reproducible", None);
        check("key", None);
        check("tidy --out x", None);
        check("dist --suite", None);
        check("dist --out", None);
        check("deploy", None);
    }
}
