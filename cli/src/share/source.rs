//! A server that has the whole file and answers requests for parts of it.

use std::io::Read;
use std::time::Duration;

use format::{ModelId, PieceIndex, PieceLayer};
use p2p::LinkId;
use store::{Reply, place};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::happening::Happening;

/// A request that takes longer for one piece is given up.
const REQUEST: Duration = Duration::from_secs(60);
/// Pause after a failed request: the swarm asks again at once.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct Source {
    pub url: String,
    agent: ureq::Agent,
}

impl Source {
    pub fn new(url: &str) -> Source {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(REQUEST))
            .timeout_connect(Some(Duration::from_secs(10)));
        Source {
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
            let bytes = got.ok().flatten();
            if bytes.is_none() {
                sleep(PAUSE).await;
            }
            tell.send(Happening::Fetched { link, piece, bytes })
                .await
                .is_ok()
        });
    }

    /// Asks for the hashes of the pieces, which lie beside the file if our own program serves it.
    pub fn fetch_layer(&self, id: ModelId, tell: mpsc::Sender<Happening>) {
        let source = self.clone();
        tokio::spawn(async move {
            let got = tokio::task::spawn_blocking(move || source.get_layer(id)).await;
            if let Some(layer) = got.ok().flatten() {
                return tell.send(Happening::Layer(layer)).await.is_ok();
            }
            true
        });
    }

    fn get(&self, id: ModelId, piece: PieceIndex) -> Option<Vec<u8>> {
        let (at, len) = id.piece_range(piece);
        let end = at + u64::from(len) - 1;
        let request = self
            .agent
            .get(&self.url)
            .header("range", format!("bytes={at}-{end}"));
        let response = request.call().ok()?;
        let header = |name: &str| response.headers().get(name)?.to_str().ok();
        let reply = Reply {
            status: response.status().as_u16(),
            content_range: header("content-range"),
            content_length: header("content-length").and_then(|text| text.parse().ok()),
        };
        let place = place(Some(id.length), at, reply).ok()?;
        // A server that sends the whole file for every part would send it once for every piece.
        if place.first != at {
            return None;
        }
        let mut bytes = vec![0; len as usize];
        response
            .into_body()
            .into_reader()
            .read_exact(&mut bytes)
            .ok()?;
        Some(bytes)
    }

    fn get_layer(&self, id: ModelId) -> Option<PieceLayer> {
        let url = format!("{}.pieces", self.url);
        let response = self.agent.get(&url).call().ok()?;
        let most = u64::from(id.pieces()) * 32;
        let mut bytes = Vec::new();
        response
            .into_body()
            .into_reader()
            .take(most + 1)
            .read_to_end(&mut bytes)
            .ok()?;
        PieceLayer::parse(id, &bytes).ok()
    }
}
