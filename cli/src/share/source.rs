//! A server that has the whole file and answers requests for parts of it.

use std::fmt;
use std::io::Read;
use std::time::Duration;

use format::{ModelId, PieceIndex, PieceLayer};
use p2p::LinkId;
use store::{RangeRefusal, Reply, place};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::happening::Happening;

/// A request that takes longer for one piece is given up.
const REQUEST: Duration = Duration::from_secs(60);
/// Pause after a failed request: the swarm asks again at once.
const PAUSE: Duration = Duration::from_millis(500);

/// Which of the link's servers it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerId(pub usize);

#[derive(Clone)]
pub struct Source {
    pub number: ServerId,
    pub url: String,
    agent: ureq::Agent,
}

/// Why a server's answer is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No answer, in the system's words.
    Unreachable(String),
    Status(u16),
    /// It sends the whole file or something else, whatever part is asked for.
    NoParts,
    OtherLength {
        got: u64,
    },
    /// The answer ended early.
    Cut,
    /// What came is not the link's: pieces or their hashes.
    OtherBytes,
}

impl Trouble {
    /// Whether asking again can help.
    pub fn may_pass(&self) -> bool {
        match self {
            Trouble::Unreachable(_) | Trouble::Cut => true,
            Trouble::Status(status) => matches!(status, 408 | 429 | 500..=599),
            Trouble::NoParts | Trouble::OtherLength { .. } | Trouble::OtherBytes => false,
        }
    }

    /// Somebody is there who may change his mind: it is asked again for as long as a person waits.
    pub fn is_busy(&self) -> bool {
        matches!(self, Trouble::Status(_)) && self.may_pass()
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Unreachable(why) => write!(f, "it cannot be reached ({why})"),
            Trouble::Status(404) => f.write_str("it has no such file (status 404)"),
            Trouble::Status(status) => write!(f, "it refuses with status {status}"),
            Trouble::NoParts => f.write_str("it does not answer requests for parts of a file"),
            Trouble::OtherLength { got } => {
                write!(f, "its file has {got} bytes and is not the link's")
            }
            Trouble::Cut => f.write_str("its answer ended early"),
            Trouble::OtherBytes => f.write_str("what it sent is not of the link's file"),
        }
    }
}

impl Source {
    pub fn new(number: ServerId, url: &str) -> Source {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(REQUEST))
            .timeout_connect(Some(Duration::from_secs(10)));
        Source {
            number,
            url: url.to_owned(),
            agent: config.build().into(),
        }
    }

    /// Asks for one piece and tells what came of it.
    pub fn fetch(
        &self,
        id: ModelId,
        link: LinkId,
        piece: PieceIndex,
        tell: mpsc::Sender<Happening>,
    ) {
        let source = self.clone();
        tokio::spawn(async move {
            let got = tokio::task::spawn_blocking(move || source.get(id, piece)).await;
            let bytes = got.unwrap_or(Err(Trouble::Cut));
            if bytes.is_err() {
                sleep(PAUSE).await;
            }
            tell.send(Happening::Fetched { link, piece, bytes })
                .await
                .is_ok()
        });
    }

    /// Asks for the hashes of the pieces, which lie beside the file if our own program serves it.
    pub fn fetch_layer(&self, id: ModelId, pause: Duration, tell: mpsc::Sender<Happening>) {
        let source = self.clone();
        tokio::spawn(async move {
            sleep(pause).await;
            let server = source.number;
            let got = tokio::task::spawn_blocking(move || source.get_layer(id)).await;
            let happening = match got.unwrap_or(Err(Trouble::Cut)) {
                Ok(layer) => Happening::Layer(layer),
                Err(trouble) => Happening::NoLayer { server, trouble },
            };
            tell.send(happening).await.is_ok()
        });
    }

    fn get(&self, id: ModelId, piece: PieceIndex) -> Result<Vec<u8>, Trouble> {
        let (at, len) = id.piece_range(piece);
        let end = at + u64::from(len) - 1;
        let request = self
            .agent
            .get(&self.url)
            .header("range", format!("bytes={at}-{end}"));
        let response = request.call().map_err(|error| unreachable(&error))?;
        let header = |name: &str| response.headers().get(name)?.to_str().ok();
        let reply = Reply {
            status: response.status().as_u16(),
            content_range: header("content-range"),
            content_length: header("content-length").and_then(|text| text.parse().ok()),
        };
        let place = place(Some(id.length), at, reply).map_err(|refusal| match refusal {
            // Asked for a part behind its end.
            RangeRefusal::Status(416) => Trouble::OtherBytes,
            RangeRefusal::Status(status) => Trouble::Status(status),
            RangeRefusal::OtherFile { got, .. } => Trouble::OtherLength { got },
            RangeRefusal::Unreadable | RangeRefusal::StartsLate { .. } => Trouble::NoParts,
        })?;
        // A server that sends the whole file for every part would send it once for every piece.
        if place.first != at {
            return Err(Trouble::NoParts);
        }
        let mut bytes = vec![0; len as usize];
        let mut body = response.into_body().into_reader();
        body.read_exact(&mut bytes).map_err(|_| Trouble::Cut)?;
        Ok(bytes)
    }

    fn get_layer(&self, id: ModelId) -> Result<PieceLayer, Trouble> {
        let url = format!("{}.pieces", self.url);
        let response = self.agent.get(&url).call();
        let response = response.map_err(|error| unreachable(&error))?;
        match response.status().as_u16() {
            200 => {}
            status => return Err(Trouble::Status(status)),
        }
        let most = u64::from(id.pieces()) * 32;
        let mut bytes = Vec::new();
        let body = response.into_body().into_reader();
        let read = body.take(most + 1).read_to_end(&mut bytes);
        read.map_err(|_| Trouble::Cut)?;
        PieceLayer::parse(id, &bytes).map_err(|_| Trouble::OtherBytes)
    }
}

fn unreachable(error: &ureq::Error) -> Trouble {
    Trouble::Unreachable(error.to_string())
}
