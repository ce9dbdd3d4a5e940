//! The sources of a catalogue's model. When one fails the next is taken, and nothing that was
//! verified is fetched again: a piece is worth the same wherever it came from.

use std::collections::VecDeque;

use protocol::{CatalogueEntry, ErrorReport};
use store::Disk;

use super::job::{Bench, End, Job, Origin, Stage};
use crate::engine::Engine;

/// The sources that can still be tried; the first is in use.
#[derive(Default)]
pub struct Places {
    /// Empty for every origin but a catalogue.
    open: VecDeque<Place>,
    /// What the others did, each named.
    failed: Vec<String>,
}

struct Place {
    url: String,
    pieces_url: String,
    /// It was left because it was slow or away, so it is the last to be asked again.
    is_tired: bool,
}

impl Places {
    pub fn of(origin: &Origin) -> Places {
        let mut places = Places::default();
        if let Origin::Catalogue(entry) = origin {
            let others = entry.others.iter().map(|it| (&it.url, &it.pieces_url));
            let all = [(&entry.url, &entry.pieces_url)].into_iter().chain(others);
            places.open = all
                .map(|(url, pieces_url)| Place {
                    url: url.clone(),
                    pieces_url: pieces_url.clone(),
                    is_tired: false,
                })
                .collect();
        }
        places
    }

    pub fn url(&self) -> &str {
        self.open.front().map_or("", |place| &place.url)
    }

    pub fn pieces_url(&self) -> &str {
        self.open.front().map_or("", |place| &place.pieces_url)
    }

    pub fn has_another(&self) -> bool {
        self.open.len() > 1
    }

    /// The source in use gave nothing, or something else: it is not asked again.
    pub fn give_up(&mut self, why: &ErrorReport) {
        if let Some(place) = self.open.pop_front() {
            self.failed
                .push(format!("{}: {}", host(&place.url), why.what));
        }
    }

    /// The source in use is away or busy: the next one is asked meanwhile, if there is one that
    /// was not left for that reason too.
    pub fn pass_over(&mut self) -> bool {
        let is_better = self.open.get(1).is_some_and(|next| !next.is_tired);
        if is_better && let Some(mut place) = self.open.pop_front() {
            place.is_tired = true;
            self.open.push_back(place);
        }
        is_better
    }

    /// The last failure, with the name of its source and of all that failed before it.
    pub fn named(&self, mut report: ErrorReport) -> ErrorReport {
        let Some(place) = self.open.front() else {
            return report;
        };
        let last = format!("{}: {}", host(&place.url), report.what);
        report.what = match self.failed.as_slice() {
            [] => last,
            failed => format!(
                "None of {} sources gives this model. {} {last}",
                failed.len() + 1,
                failed.join(" ")
            ),
        };
        report
    }
}

/// What a person knows a server by.
fn host(url: &str) -> &str {
    let host = url.split_once("://").map(|(_, rest)| rest);
    let host = host.and_then(|rest| rest.split(['/', '?', '#']).next());
    host.map_or("This server", |host| {
        host.rsplit_once('@').map_or(host, |(_, host)| host)
    })
}

impl<D: Disk> Job<D> {
    /// Goes on with another source from where the last one was left.
    pub(super) fn at_new_place<E: Engine<File = D>>(
        &mut self,
        stage: Stage<D>,
        bench: &mut Bench<'_, E>,
    ) -> Result<Stage<D>, End> {
        let Origin::Catalogue(CatalogueEntry { length, .. }) = self.origin else {
            return Ok(stage);
        };
        if let Stage::Waiting | Stage::Layer(_) = stage {
            return self.ask_for_layer(bench);
        }
        let url = self.places.url().to_owned();
        let source = bench.desk.file_address(&url, length);
        self.sources.push(source);
        Ok(match stage {
            Stage::Part(mut part) => {
                part.source = source;
                Stage::Part(part)
            }
            Stage::Head(mut head) => {
                head.source = source;
                return self.collect(head, bench);
            }
            Stage::Opening(mut opening) => {
                opening.source = source;
                Stage::Opening(opening)
            }
            Stage::Recheck(mut recheck) => {
                recheck.receive.source = source;
                Stage::Recheck(recheck)
            }
            Stage::Receive(receive) => return self.receive_from(receive, source, bench),
            stage => stage,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_known_by_its_host() {
        for (url, expected) in [
            ("https://a.example/m/x.slm?y=1", "a.example"),
            ("https://a.example:8443?x", "a.example:8443"),
            ("https://name:word@a.example/x", "a.example"),
            ("../models/x.slm", "This server"),
            ("x.slm", "This server"),
        ] {
            assert_eq!(host(url), expected);
        }
    }
}
