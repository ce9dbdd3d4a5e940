//! Which files a model has in the directory `models`, and what a file's name means.
//!
//! | name | content | from | to |
//! |---|---|---|---|
//! | `<root>.pieces` | the piece layer | before the first piece | removal of the model |
//! | `<root>.part` | the pieces that arrived, at their places | start of an import | its end |
//! | `<root>.have` | which of them are verified (`journal`) | start of an import | its end |
//! | `<root>.slm` | a complete, verified model | end of an import | removal |
//! | `<key>.raw` | a foreign file as its server sent it (`raw`) | its first piece | its conversion |
//! | `<key>.got` | which of its pieces are here | with it | with it |
//! | `<key>.kv` | what was computed for a conversation | its first kept answer | removal of the conversation |
//! | `incoming-<n>.part` | a conversion's output, root not known yet | its start | its end |
//!
//! `<root>` is 64 lower-case hexadecimal digits, and so is `<key>`, the digest of an address or of
//! a conversation's number.
//! Order at the end of an import: `finish`, rename
//! `part` to `slm`, remove `have`. Whatever step a crash leaves undone, `library` finds.

use std::fmt;

use format::{Digest, Root};

/// A file name of ours. `Display` gives the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Part(Root),
    Have(Root),
    Done(Root),
    Pieces(Root),
    Raw(Root),
    Got(Root),
    Kept(Root),
    Incoming(u64),
}

/// Directory of all models within the origin's private file system.
pub const DIRECTORY: &str = "models";

pub fn part(root: Root) -> String {
    Name::Part(root).to_string()
}

pub fn have(root: Root) -> String {
    Name::Have(root).to_string()
}

pub fn done(root: Root) -> String {
    Name::Done(root).to_string()
}

pub fn pieces(root: Root) -> String {
    Name::Pieces(root).to_string()
}

pub fn raw(key: Root) -> String {
    Name::Raw(key).to_string()
}

pub fn got(key: Root) -> String {
    Name::Got(key).to_string()
}

pub fn kept(key: Root) -> String {
    Name::Kept(key).to_string()
}

/// `number` tells conversions apart that run at the same time.
pub fn incoming(number: u64) -> String {
    Name::Incoming(number).to_string()
}

/// `None` for a name that this program never writes.
pub fn parse(name: &str) -> Option<Name> {
    let parsed = read(name)?;
    // Upper-case digits, signs and leading zeros would give one file two names.
    (parsed.to_string() == name).then_some(parsed)
}

fn read(name: &str) -> Option<Name> {
    let (stem, ending) = name.rsplit_once('.')?;
    if let Some(number) = stem.strip_prefix("incoming-") {
        let number = number.parse().ok()?;
        return (ending == "part").then_some(Name::Incoming(number));
    }
    let root = Root(Digest::from_hex(stem)?);
    match ending {
        "part" => Some(Name::Part(root)),
        "have" => Some(Name::Have(root)),
        "slm" => Some(Name::Done(root)),
        "pieces" => Some(Name::Pieces(root)),
        "raw" => Some(Name::Raw(root)),
        "got" => Some(Name::Got(root)),
        "kv" => Some(Name::Kept(root)),
        _ => None,
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Part(root) => write!(f, "{root}.part"),
            Name::Have(root) => write!(f, "{root}.have"),
            Name::Done(root) => write!(f, "{root}.slm"),
            Name::Pieces(root) => write!(f, "{root}.pieces"),
            Name::Raw(root) => write!(f, "{root}.raw"),
            Name::Got(root) => write!(f, "{root}.got"),
            Name::Kept(root) => write!(f, "{root}.kv"),
            Name::Incoming(number) => write!(f, "incoming-{number}.part"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_as_itself() {
        let root = Root(Digest([0xa5; 32]));
        for name in [
            Name::Part(root),
            Name::Have(root),
            Name::Done(root),
            Name::Pieces(root),
            Name::Raw(root),
            Name::Got(root),
            Name::Kept(root),
            Name::Incoming(0),
            Name::Incoming(u64::MAX),
        ] {
            assert_eq!(parse(&name.to_string()), Some(name));
        }
    }

    #[test]
    fn foreign_names_are_nobodys() {
        let hex = "a5".repeat(32);
        for name in [
            String::new(),
            ".slm".into(),
            "readme.txt".into(),
            format!("{hex}.txt"),
            format!("{}.slm", hex.to_uppercase()),
            format!("{}.slm", &hex[1..]),
            format!("{hex}.slm.slm"),
            format!("../{hex}.slm"),
            "incoming-.part".into(),
            "incoming-07.part".into(),
            "incoming-+7.part".into(),
            "incoming-7.slm".into(),
        ] {
            assert_eq!(parse(&name), None, "{name}");
        }
    }
}
