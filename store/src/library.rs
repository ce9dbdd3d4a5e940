//! What a directory of models holds, derived from its listing alone. Nothing about models is
//! remembered anywhere else, so an interruption can never leave "downloading" behind.

use std::collections::BTreeMap;

use format::{ModelId, PIECE_BYTES, Root};

use crate::names::{self, Name};
use crate::{Entry, HaveRecord, read_have};

/// Sorted by root; no entry keeps another from being listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    pub complete: Vec<Stored>,
    pub partial: Vec<Partial>,
    /// Keys of files that came from an address, whole or not, with their records.
    pub raws: Vec<Root>,
    /// Keys of what was kept of conversations, with bytes.
    pub kept: Vec<(Root, u64)>,
    /// Stored models that cannot be used: empty, or of a length that the system will not tell.
    pub damaged: Vec<Root>,
    /// Files of ours that nothing needs. Delete them at start-up, while no import runs: an import
    /// that is just beginning looks the same.
    pub strays: Vec<String>,
    /// Files that are not ours. Leave them alone.
    pub foreign: Vec<String>,
}

/// A complete model. That its bytes are right was proved on arrival and is proved again on load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    pub id: ModelId,
    /// `<root>.pieces` is there and has the right length; otherwise `LayerRebuild` makes it again.
    pub pieces: bool,
}

/// An unfinished import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    pub root: Root,
    /// `<root>.have` is there: `progress` can read it.
    pub have: bool,
    /// `<root>.pieces` is there: the import can go on without asking for the layer again.
    pub pieces: bool,
}

/// What one root's files are.
#[derive(Clone, Copy, Debug, Default)]
struct Listed {
    /// `None` if there is no such file, `Some(None)` if its length is unknown.
    part: Option<Option<u64>>,
    have: Option<Option<u64>>,
    done: Option<Option<u64>>,
    pieces: Option<Option<u64>>,
    raw: Option<Option<u64>>,
    got: Option<Option<u64>>,
}

impl Library {
    pub fn derive(listing: &[Entry]) -> Library {
        let mut library = Library::default();
        let mut models: BTreeMap<Root, Listed> = BTreeMap::new();
        for entry in listing {
            let len = Some(entry.len);
            match names::parse(&entry.name) {
                Some(Name::Part(root)) => models.entry(root).or_default().part = len,
                Some(Name::Have(root)) => models.entry(root).or_default().have = len,
                Some(Name::Done(root)) => models.entry(root).or_default().done = len,
                Some(Name::Pieces(root)) => models.entry(root).or_default().pieces = len,
                Some(Name::Raw(key)) => models.entry(key).or_default().raw = len,
                Some(Name::Got(key)) => models.entry(key).or_default().got = len,
                Some(Name::Kept(key)) => library.kept.push((key, entry.len.unwrap_or(0))),
                Some(Name::Incoming(_)) => library.strays.push(entry.name.clone()),
                None => library.foreign.push(entry.name.clone()),
            }
        }
        for (root, listed) in models {
            library.add(root, listed);
        }
        library.kept.sort();
        library
    }

    /// Bytes of all complete models.
    pub fn stored_bytes(&self) -> u64 {
        self.complete.iter().map(|stored| stored.id.length).sum()
    }

    fn add(&mut self, root: Root, listed: Listed) {
        let Listed {
            part,
            have,
            done,
            pieces,
            raw,
            got,
        } = listed;
        match (raw, got) {
            (Some(_), Some(_)) => self.raws.push(root),
            _ => {
                self.stray(raw.is_some(), Name::Raw(root));
                self.stray(got.is_some(), Name::Got(root));
            }
        }
        if let Some(len) = done {
            self.stray(part.is_some(), Name::Part(root));
            self.stray(have.is_some(), Name::Have(root));
            match len {
                Some(length @ 1..) => self.complete.push(Stored {
                    id: ModelId { root, length },
                    pieces: pieces == Some(Some(layer_len(length))),
                }),
                _ => self.damaged.push(root),
            }
        } else if part.is_some_and(|len| len != Some(0)) {
            self.partial.push(Partial {
                root,
                have: have.is_some(),
                pieces: pieces.is_some(),
            });
        } else {
            // Without a byte of the model the other files are of no use.
            self.stray(part.is_some(), Name::Part(root));
            self.stray(have.is_some(), Name::Have(root));
            self.stray(pieces.is_some(), Name::Pieces(root));
        }
    }

    fn stray(&mut self, is_there: bool, name: Name) {
        if is_there {
            self.strays.push(name.to_string());
        }
    }
}

impl Partial {
    /// How far the import got, from the bytes of `<root>.have`; `None` if they hold no record.
    pub fn progress(&self, have: &[u8]) -> Option<HaveRecord> {
        read_have(self.root, have)
    }
}

/// Bytes of a piece layer.
pub(crate) fn layer_len(length: u64) -> u64 {
    32 * length.div_ceil(u64::from(PIECE_BYTES))
}

#[cfg(test)]
mod tests {
    use format::Digest;

    use super::*;

    fn root(byte: u8) -> Root {
        Root(Digest([byte; 32]))
    }

    fn entry(name: String, len: u64) -> Entry {
        let len = Some(len);
        Entry { name, len }
    }

    /// One letter a file: part, have, slm, pieces; each of the length given.
    fn files(byte: u8, letters: &str, len: u64) -> Vec<Entry> {
        let file = |letter| match letter {
            'p' => entry(names::part(root(byte)), len),
            'h' => entry(names::have(root(byte)), 8192),
            's' => entry(names::done(root(byte)), len),
            'l' => entry(names::pieces(root(byte)), layer_len(len)),
            _ => unreachable!(),
        };
        letters.chars().map(file).collect()
    }

    fn check(letters: &str, len: u64, class: &str, strays: &str) {
        let library = Library::derive(&files(1, letters, len));
        let found = match (
            library.complete.as_slice(),
            library.partial.as_slice(),
            library.damaged.as_slice(),
        ) {
            ([stored], [], []) => format!("complete {}", stored.pieces),
            ([], [partial], []) => format!("partial {} {}", partial.have, partial.pieces),
            ([], [], [_]) => "damaged".into(),
            ([], [], []) => "nothing".into(),
            _ => "several".into(),
        };
        assert_eq!(found, class, "{letters} {len}");
        let expected: Vec<String> = files(1, strays, len).into_iter().map(|e| e.name).collect();
        assert_eq!(library.strays, expected, "{letters} {len}");
    }

    #[test]
    fn every_state_that_a_crash_can_leave() {
        let len = 3_000_000;
        // In the order in which an import makes and removes its files.
        check("l", len, "nothing", "l");
        check("lp", 0, "nothing", "pl");
        check("lp", len, "partial false true", "");
        check("lph", len, "partial true true", "");
        check("lhs", len, "complete true", "h");
        check("ls", len, "complete true", "");
        // Damage from outside.
        check("h", len, "nothing", "h");
        check("ph", len, "partial true false", "");
        check("s", len, "complete false", "");
        check("phls", len, "complete true", "ph");
        check("s", 0, "damaged", "");
        check("", len, "nothing", "");
    }

    /// In a peer, one incomplete model made the list of all models fail (users' page, 1.5.2).
    #[test]
    fn one_damaged_model_never_hides_another() {
        let mut listing = files(1, "ls", 3_000_000);
        listing.extend(files(2, "s", 0));
        listing.extend(files(3, "ph", 5));
        listing.push(Entry {
            name: names::done(root(4)),
            len: None,
        });
        listing.push(entry("incoming-3.part".into(), 9));
        listing.push(entry(".DS_Store".into(), 6148));
        let library = Library::derive(&listing);
        assert_eq!(library.complete.len(), 1);
        assert_eq!(library.stored_bytes(), 3_000_000);
        assert_eq!(library.damaged, [root(2), root(4)]);
        assert_eq!(library.partial[0].root, root(3));
        assert_eq!(library.strays, ["incoming-3.part"]);
        assert_eq!(library.foreign, [".DS_Store"]);
    }

    #[test]
    fn a_layer_of_another_length_is_made_again() {
        let mut listing = files(1, "s", 3_000_000);
        listing.push(entry(names::pieces(root(1)), 64));
        assert!(!Library::derive(&listing).complete[0].pieces);
    }
}
