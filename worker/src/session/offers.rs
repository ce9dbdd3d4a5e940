//! Which models there are to be had: the server's own, and those that the publisher signed.
//!
//! Both lists are asked for at once and told together. A server without the one or the other is
//! normal; a published list that is forged, of another version or older than one that was seen
//! before is refused in words, and the server's own list is still told.

use protocol::{
    CATALOGUE_SCHEMA, Catalogue, CatalogueEntry, ErrorReport, Event, Offered, PUBLISHED_SCHEMA,
    Published, PublishedModel, PublishedSource, Signed, Stage, Subject, TrResult,
    catalogue_message,
};
use serde_json::value::RawValue;
use store::Disk;

use super::{Session, Station};
use crate::PublicKey;
use crate::engine::Engine;
use crate::source::{Source, SourceFault, beginning};
use crate::words;

/// The server's own list, relative to itself, and the publisher's, which lies beside the app.
const OWN_URL: &str = "catalogue.json";
const PUBLISHED_URL: &str = "../catalogue.json";
/// A list of some two thousand models.
const BYTES_MAX: u32 = 1024 * 1024;

/// The two questions, while they are asked.
#[derive(Default)]
pub struct Offers {
    own: Option<Source>,
    published: Option<Source>,
    /// Of what the page has seen.
    newest: u64,
    own_list: Option<Result<Vec<CatalogueEntry>, ErrorReport>>,
    /// `None` within: there is no such list.
    published_list: Option<Result<Option<Published>, ErrorReport>>,
}

impl Offers {
    pub fn concern(&self, source: Source) -> bool {
        self.own == Some(source) || self.published == Some(source)
    }
}

impl<D: Disk, E: Engine<File = D>> Session<D, E> {
    pub(super) fn ask_for_offers(&mut self, newest: u64) {
        self.offers.newest = self.offers.newest.max(newest);
        // A second question while the first is under way gets the same answer.
        if self.offers.own.is_some() || self.offers.published.is_some() {
            return;
        }
        let own = self.desk.address(OWN_URL);
        let published = self.desk.address(PUBLISHED_URL);
        self.offers.own = Some(own);
        self.offers.published = Some(published);
        self.desk.need_whole(own, BYTES_MAX);
        self.desk.need_whole(published, BYTES_MAX);
    }

    pub(super) fn on_offers(&mut self, source: Source, bytes: Result<Vec<u8>, SourceFault>) {
        self.desk.cancel_source(source);
        if self.offers.own.take_if(|own| *own == source).is_some() {
            self.offers.own_list = Some(own_list(bytes));
        } else {
            let key = match &self.station {
                Station::Ready(start) => start.publisher,
                _ => None,
            };
            self.offers.published = None;
            let newest = self.offers.newest;
            let list = key.map_or(Ok(None), |key| published_list(bytes, &key, newest));
            self.offers.published_list = Some(list);
        }
        let lists = (&self.offers.own_list, &self.offers.published_list);
        if let (Some(_), Some(_)) = lists {
            self.tell_offers();
        }
    }

    fn tell_offers(&mut self) {
        let offers = std::mem::take(&mut self.offers);
        let (Some(own), Some(published)) = (offers.own_list, offers.published_list) else {
            return;
        };
        let mut offered = Offered::default();
        let known = match published {
            Ok(list) => list,
            Err(error) => {
                self.desk.records.push(error.clone());
                offered.refused = Some(error);
                None
            }
        };
        match (own, &known, &offered.refused) {
            (Ok(models), ..) => offered.models = models,
            // Nothing at all is offered.
            (Err(error), None, None) => return self.desk.fail(Subject::Catalogue, error),
            (Err(_), ..) => {}
        }
        if let Some(published) = known {
            offered.number = Some(published.number);
            for model in &published.models {
                // The server's own offer of the same model is nearer.
                let is_there = offered.models.iter().any(|own| own.root == model.root);
                if let (false, Some(entry)) = (is_there, entry(model)) {
                    offered.models.push(entry);
                }
            }
        }
        self.desk.event(Event::Catalogue(offered));
    }
}

fn own_list(bytes: Result<Vec<u8>, SourceFault>) -> Result<Vec<CatalogueEntry>, ErrorReport> {
    let bytes = bytes.map_err(|fault| fault.report())?;
    if store::looks_like_a_page(&bytes) {
        let first = beginning(&bytes);
        return Err(SourceFault::Page { first }.report());
    }
    let catalogue: Option<Catalogue> = serde_json::from_slice(&bytes).ok();
    let catalogue = catalogue.filter(|catalogue| catalogue.schema == CATALOGUE_SCHEMA);
    let models = catalogue.map(|catalogue| catalogue.models);
    models.ok_or_else(|| {
        words::report(
            TrResult::Source,
            Stage::Import,
            "the server's catalogue is not one of this version",
            "reload the page, or tell whoever runs the server",
        )
    })
}

fn published_list(
    bytes: Result<Vec<u8>, SourceFault>,
    key: &PublicKey,
    newest: u64,
) -> Result<Option<Published>, ErrorReport> {
    if let Err(SourceFault::TooLarge { most }) = bytes {
        let most = words::megabytes(most);
        return Err(refused(&format!(
            "the published catalogue is larger than {most}"
        )));
    }
    // An app that publishes no list, and a server that answers everything with a page.
    let Some(bytes) = bytes.ok().filter(|it| !store::looks_like_a_page(it)) else {
        return Ok(None);
    };
    let other = |_| refused("the published catalogue is not one of this version");
    let file: Signed<&RawValue> = serde_json::from_slice(&bytes).map_err(other)?;
    let text = file.signed.get();
    if !key.has_signed(&catalogue_message(text), &file.signature) {
        return Err(refused(
            "the publisher did not sign the published catalogue",
        ));
    }
    let published: Published = serde_json::from_str(text).map_err(other)?;
    if published.schema != PUBLISHED_SCHEMA {
        return Err(refused(
            "the published catalogue is not one of this version",
        ));
    }
    if published.number < newest {
        return Err(refused(&format!(
            "the published catalogue is number {}, and number {newest} was seen before",
            published.number
        )));
    }
    Ok(Some(published))
}

fn refused(what: &str) -> ErrorReport {
    let remedy = "Models of that list are not offered; tell whoever runs the server.";
    words::report(TrResult::Source, Stage::Import, what, remedy)
}

/// Published addresses are relative to the app; an entry's are relative to the server's own list.
fn entry(model: &PublishedModel) -> Option<CatalogueEntry> {
    let seen_from_there = |url: &String| match url.contains("://") {
        true => url.clone(),
        false => format!("../{url}"),
    };
    let mut sources = model.sources.iter().map(|source| PublishedSource {
        url: seen_from_there(&source.url),
        pieces_url: seen_from_there(&source.pieces_url),
    });
    let PublishedSource { url, pieces_url } = sources.next()?;
    Some(CatalogueEntry {
        name: model.name.clone(),
        licence: model.licence.clone(),
        root: model.root,
        length: model.length,
        url,
        pieces_url,
        others: sources.collect(),
    })
}
