//! Whom a person who fetches still waits for, and when that is nobody.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::{Node, Shelf};
use crate::failure::Failure;
use crate::share::happening::Watcher;
use crate::share::rendezvous::{LineId, Order};
use crate::share::source::Trouble;

/// A tracker that never answered is tried so often, if nobody else is left.
const TRIES_MAX: u32 = 3;
/// After so much time without a byte it is said whom one waits for.
const QUIET: Duration = Duration::from_secs(5);

/// A tracker, as the node sees it.
pub struct Line {
    pub orders: mpsc::UnboundedSender<Order>,
    /// Offers that are kept open there.
    pub offers: usize,
    pub url: String,
    /// It answered once; so it may come back when it goes away.
    has_answered: bool,
    failures: u32,
    trouble: Option<String>,
    /// How many have all of it, by its count.
    complete: Option<u32>,
}

impl Line {
    pub fn new(orders: mpsc::UnboundedSender<Order>, offers: usize, url: &str) -> Line {
        Line {
            orders,
            offers,
            url: url.to_owned(),
            has_answered: false,
            failures: 0,
            trouble: None,
            complete: None,
        }
    }

    fn may_help(&self) -> bool {
        self.has_answered || self.failures < TRIES_MAX
    }

    fn words(&self) -> String {
        let url = &self.url;
        match (&self.trouble, self.complete) {
            (Some(trouble), _) => format!("tracker {url} ({trouble})"),
            (None, Some(0)) => format!("peers at tracker {url}, which knows none that has all"),
            (None, _) => format!("peers at tracker {url}"),
        }
    }
}

/// What a person was told of waiting.
#[derive(Default)]
pub struct Patience {
    down: u64,
    since: Option<Instant>,
    told: String,
}

impl Node {
    /// The tracker answered, perhaps with a count.
    pub(super) fn tracker_is_here(&mut self, line: LineId, complete: Option<u32>) {
        if let Some(line) = self.lines.get_mut(line.0) {
            line.has_answered = true;
            line.trouble = None;
            line.complete = complete.or(line.complete);
        }
    }

    pub(super) fn tracker_is_away(&mut self, line: LineId, why: String, watcher: &mut dyn Watcher) {
        let Some(line) = self.lines.get_mut(line.0) else {
            return;
        };
        line.failures += 1;
        if line.trouble.as_ref() != Some(&why) {
            watcher.said(format!("tracker {}: {why}; it is tried again", line.url));
            line.trouble = Some(why);
        }
    }

    /// Ends what can never be: nobody is connected, and nobody can come.
    pub(super) fn see_hope(&self) -> Result<(), Failure> {
        let knows_layer = self.swarm.layer().is_some();
        let is_met = !self.connections.is_empty();
        let hopes = is_met
            || self.lines.iter().any(Line::may_help)
            || self.servers.iter().any(|it| it.may_help(knows_layer));
        if hopes || matches!(self.shelf, Shelf::Finished(_)) {
            return Ok(());
        }
        let servers = self.servers.iter().map(|it| it.told().to_owned());
        let lines = self.lines.iter().map(Line::words);
        let reasons: Vec<String> = servers.chain(lines).collect();
        let what = match reasons.is_empty() {
            true => "whoever made the link's offer is not there any more".into(),
            false => format!("nobody is left who could give it: {}", reasons.join("; ")),
        };
        let lasts = |trouble: &Trouble| !trouble.may_pass();
        let is_reached = |it: &super::Server| it.trouble.as_ref().is_some_and(lasts);
        if self.lines.is_empty() && self.servers.iter().all(is_reached) {
            return Err(Failure::refused(what, "Ask for a new link."));
        }
        Err(Failure::Machine(format!(
            "{what}. See that this machine and the other side are connected, and give the same \
             command again; or ask for a new link."
        )))
    }

    /// Says whom one waits for when nothing has come for a while.
    pub(super) fn say_what_is_waited_for(&mut self, watcher: &mut dyn Watcher) {
        if matches!(self.shelf, Shelf::Finished(_)) {
            return;
        }
        let (now, down) = (Instant::now(), self.swarm.status().down);
        let patience = &mut self.patience;
        if patience.down != down {
            *patience = Patience {
                down,
                ..Patience::default()
            };
        }
        let since = *patience.since.get_or_insert(now);
        if now - since < QUIET {
            return;
        }
        let words = self.whom_it_waits_for().join(", ");
        if !words.is_empty() && words != self.patience.told {
            watcher.said(format!("waiting for {words}; Ctrl-C ends it"));
            self.patience.told = words;
        }
    }

    fn whom_it_waits_for(&self) -> Vec<String> {
        let knows_layer = self.swarm.layer().is_some();
        let open = self.connections.len() - self.meeting.len().min(self.connections.len());
        let peers = match open {
            0 => None,
            1 => Some("the one peer that is connected".to_owned()),
            open => Some(format!("the {open} peers that are connected")),
        };
        let servers = self.servers.iter().filter(|it| it.may_help(knows_layer));
        let servers = servers.map(|it| match &it.trouble {
            Some(trouble) => format!("server {} ({trouble})", it.source.url),
            None => format!("server {}", it.source.url),
        });
        let lines = self.lines.iter().filter(|line| line.may_help());
        let lines = lines.map(Line::words);
        peers.into_iter().chain(servers).chain(lines).collect()
    }
}
