//! The servers of a link: what they bring, what is wrong with them, and whether they are asked
//! again.

use std::time::Duration;

use format::PieceIndex;
use p2p::{Fault, Input, LinkId};
use tokio::time::sleep;

use super::Node;
use crate::share::happening::{Happening, Watcher};
use crate::share::source::{ServerId, Source, Trouble};

/// Pause before a server that failed is asked again.
const SERVER_PAUSE: Duration = Duration::from_secs(10);
/// The same while it is not known whether anybody is there at all.
const KNOCK_PAUSE: Duration = Duration::from_secs(2);
/// A server that nobody has heard of is asked so often for the hashes of pieces.
const KNOCKS_MAX: u32 = 3;

pub struct Server {
    pub source: Source,
    /// For as long as the swarm asks it for pieces.
    link: Option<LinkId>,
    /// It gave something in this run, so it may come back when it goes away.
    has_given: bool,
    knocks: u32,
    /// It will never give a piece; it will never give the hashes of pieces.
    has_no_file: bool,
    has_no_layer: bool,
    /// What was told of it last, and whether anybody answered then.
    pub trouble: Option<Trouble>,
    told: String,
}

impl Server {
    /// Whether it can still help somebody who has, or has not, the hashes of the pieces.
    pub fn may_help(&self, knows_layer: bool) -> bool {
        !self.has_no_file && (knows_layer || !self.has_no_layer)
    }

    pub fn told(&self) -> &str {
        &self.told
    }
}

impl Node {
    pub fn add_server(&mut self, url: &str) {
        let number = ServerId(self.servers.len());
        self.servers.push(Server {
            source: Source::new(number, url),
            link: None,
            has_given: false,
            knocks: 0,
            has_no_file: false,
            has_no_layer: false,
            trouble: None,
            told: String::new(),
        });
        if self.swarm.layer().is_none() {
            self.ask_layer(number, Duration::ZERO);
        }
        self.open_server(number);
    }

    fn ask_layer(&self, number: ServerId, pause: Duration) {
        if let Some(server) = self.servers.get(number.0) {
            server.source.fetch_layer(self.id, pause, self.tell.clone());
        }
    }

    pub(super) fn open_server(&mut self, number: ServerId) {
        let link = self.new_link();
        if let Some(server) = self.servers.get_mut(number.0) {
            server.link = Some(link);
            self.put(Input::OpenedServer { link });
        }
    }

    fn server_of(&mut self, link: LinkId) -> Option<&mut Server> {
        let mut servers = self.servers.iter_mut();
        servers.find(|server| server.link == Some(link))
    }

    pub(super) fn ask_server(&mut self, link: LinkId, piece: PieceIndex) {
        let (id, tell) = (self.id, self.tell.clone());
        if let Some(server) = self.server_of(link) {
            server.source.fetch(id, link, piece, tell);
        }
    }

    pub(super) fn on_fetched(
        &mut self,
        link: LinkId,
        piece: PieceIndex,
        bytes: Result<Vec<u8>, Trouble>,
        watcher: &mut dyn Watcher,
    ) {
        let Some(server) = self.server_of(link) else {
            return;
        };
        let bytes = match bytes {
            Ok(bytes) => {
                server.has_given = true;
                server.trouble = None;
                Some(bytes)
            }
            Err(trouble) => {
                let may_pass = trouble.may_pass();
                tell(server, trouble, "", watcher);
                if !may_pass {
                    server.has_no_file = true;
                    server.link = None;
                    return self.put(Input::Closed { link });
                }
                None
            }
        };
        self.put(Input::Fetched { link, piece, bytes });
    }

    /// The hashes of pieces do not come from this server.
    pub(super) fn on_no_layer(
        &mut self,
        number: ServerId,
        trouble: Trouble,
        watcher: &mut dyn Watcher,
    ) {
        let Some(server) = self.servers.get_mut(number.0) else {
            return;
        };
        if self.swarm.layer().is_some() {
            return;
        }
        server.knocks += 1;
        let is_busy = trouble.is_busy();
        let goes_on = trouble.may_pass() && (is_busy || server.knocks < KNOCKS_MAX);
        server.has_no_layer = !goes_on;
        tell(server, trouble, "asked for the hashes of pieces, ", watcher);
        if goes_on {
            self.ask_layer(number, if is_busy { SERVER_PAUSE } else { KNOCK_PAUSE });
        }
    }

    /// The swarm asks it no more. Gives whether the link was a server's.
    pub(super) fn leave_server(
        &mut self,
        link: LinkId,
        fault: &Fault,
        watcher: &mut dyn Watcher,
    ) -> bool {
        let Some(server) = self.server_of(link) else {
            return false;
        };
        server.link = None;
        let is_busy = server.trouble.as_ref().is_some_and(Trouble::is_busy);
        if *fault == Fault::Silent && (server.has_given || is_busy) {
            let number = server.source.number;
            let tell = self.tell.clone();
            tokio::spawn(async move {
                sleep(SERVER_PAUSE).await;
                let again = Happening::ServerAgain { server: number };
                tell.send(again).await.is_ok()
            });
        } else {
            server.has_no_file = true;
            if fault.is_a_lie() {
                tell(server, Trouble::OtherBytes, "", watcher);
            }
        }
        true
    }
}

/// Tells a person what is wrong with a server, once.
fn tell(server: &mut Server, trouble: Trouble, asked: &str, watcher: &mut dyn Watcher) {
    let words = format!("server {}: {asked}{trouble}", server.source.url);
    server.trouble = Some(trouble);
    if server.told != words {
        watcher.said(words.clone());
        server.told = words;
    }
}
