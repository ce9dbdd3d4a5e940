//! What the world's server answers.

use store::{Break, News, ReplyHead};
use worker::session::FetchId;
use worker::{Input, Source, SourceFault};

use super::World;

/// Bytes of a body that come at a time.
const PORTION: usize = 300_000;

impl World {
    /// A good server's answer, or the fault of that address.
    pub(super) fn fetch(&mut self, fetch: FetchId, source: Source, range: Option<(u64, u64)>) {
        let url = self.named.get(&source).cloned().unwrap_or_default();
        let (first, last) = range.unwrap_or((0, u64::MAX));
        let len = (last - first).saturating_add(1).min(u64::from(u32::MAX));
        self.asked.push((url.clone(), first, len as u32));
        let status = |status| {
            News::Head(ReplyHead {
                status,
                ..ReplyHead::default()
            })
        };
        let news = match (self.faults.get(&url), self.server.get(&url)) {
            (Some(SourceFault::Status(code)), _) => status(*code),
            (Some(_), _) => News::Broken(Break::Unreachable),
            (None, None) => status(404),
            (None, Some(body)) if self.endless.contains(&url) => {
                self.bodies.insert(fetch, (body.clone(), 0));
                status(200)
            }
            (None, Some(body)) if first >= body.len() as u64 => status(416),
            (None, Some(body)) => {
                let last = last.min(body.len() as u64 - 1);
                let part = body[first as usize..=last as usize].to_vec();
                let content_range = format!("bytes {first}-{last}/{}", body.len());
                self.bodies.insert(fetch, (part, 0));
                News::Head(ReplyHead {
                    status: 206,
                    content_range: Some(content_range),
                    etag: Some(format!("\"{}\"", body.len())),
                    ..ReplyHead::default()
                })
            }
        };
        self.give(Input::Fetched { fetch, news });
    }

    pub(super) fn more(&mut self, fetch: FetchId) {
        let Some((body, at)) = self.bodies.get_mut(&fetch) else {
            return;
        };
        let end = body.len().min(*at + PORTION);
        let news = match end > *at {
            true => News::Body(body[*at..end].to_vec()),
            false => News::End,
        };
        *at = end;
        self.give(Input::Fetched { fetch, news });
    }
}
