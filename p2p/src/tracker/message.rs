//! What a tracker and its clients say to each other.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::TRACKER_TEXT_BYTES_MAX;

const ID_BYTES: usize = 20;
/// Longest text of a tracker that is shown to a person.
const SHOWN_CHARS_MAX: usize = 200;

/// Twenty bytes, on the wire a string of twenty characters up to U+00FF.
macro_rules! binary_string {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; ID_BYTES]);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&to_binary_string(&self.0))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let bytes = from_binary_string(&text).map($name);
                bytes.ok_or_else(|| serde::de::Error::custom("not a string of 20 bytes"))
            }
        }
    };
}

binary_string!(
    /// By what trackers know a model.
    InfoHash
);
binary_string!(
    /// A peer at one tracker, for as long as one socket lives.
    PeerId
);
binary_string!(
    /// An offer, drawn at random by who makes it.
    OfferId
);

pub fn to_binary_string(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

pub fn from_binary_string(text: &str) -> Option<[u8; ID_BYTES]> {
    let mut chars = text.chars();
    let mut bytes = [0; ID_BYTES];
    for byte in &mut bytes {
        *byte = u8::try_from(u32::from(chars.next()?)).ok()?;
    }
    chars.next().is_none().then_some(bytes)
}

/// One side's description, as the field is called by everybody. Ours is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SdpText {
    #[serde(rename = "type")]
    pub kind: String,
    pub sdp: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferText {
    pub offer_id: OfferId,
    pub offer: SdpText,
}

/// What a client says: an announcement, perhaps with offers; or an answer, if `answer` is there.
#[derive(Debug, Serialize, Deserialize)]
pub struct Announce {
    pub action: String,
    pub info_hash: InfoHash,
    pub peer_id: PeerId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    #[serde(
        default,
        deserialize_with = "whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub uploaded: Option<u64>,
    #[serde(
        default,
        deserialize_with = "whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub downloaded: Option<u64>,
    /// Bytes that are still to come; nothing said is not a seeder.
    #[serde(
        default,
        deserialize_with = "whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub left: Option<u64>,
    #[serde(
        default,
        deserialize_with = "whole",
        skip_serializing_if = "Option::is_none"
    )]
    pub numwant: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offers: Option<Vec<OfferText>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_peer_id: Option<PeerId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer_id: Option<OfferId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<SdpText>,
}

/// JavaScript knows one kind of number, and says nothing for infinity.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    // The conversion saturates.
    Ok(Option::<f64>::deserialize(deserializer)?.map(|number| number as u64))
}

/// How far a peer is, as it tells a tracker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the model that are still missing.
    pub left: u64,
    pub uploaded: u64,
    pub downloaded: u64,
}

impl Announce {
    pub fn new(info_hash: InfoHash, peer_id: PeerId, event: &str, progress: Progress) -> Announce {
        Announce {
            action: "announce".into(),
            info_hash,
            peer_id,
            event: Some(event.into()),
            uploaded: Some(progress.uploaded),
            downloaded: Some(progress.downloaded),
            left: Some(progress.left),
            numwant: None,
            offers: None,
            to_peer_id: None,
            offer_id: None,
            answer: None,
        }
    }
}

/// What a tracker says to one client, as far as it is known.
#[derive(Debug, PartialEq)]
pub enum FromTracker {
    Counts {
        complete: Option<u32>,
        incomplete: Option<u32>,
        interval_s: Option<u64>,
    },
    Offer {
        from: PeerId,
        offer_id: OfferId,
        sdp: String,
    },
    Answer {
        from: PeerId,
        offer_id: OfferId,
        sdp: String,
    },
    Scrape {
        complete: u32,
        incomplete: u32,
        downloaded: u32,
    },
    Refused {
        reason: String,
    },
    Warned {
        words: String,
    },
}

/// Nothing of a size that nobody needs, nothing that is no object.
pub fn parse(text: &str) -> Option<Value> {
    let short = text.len() <= TRACKER_TEXT_BYTES_MAX;
    let value: Value = short.then(|| serde_json::from_str(text).ok())??;
    value.is_object().then_some(value)
}

/// What of a tracker's message matters to a peer of this model. A message can say two things; an
/// unknown one says nothing.
pub fn read(text: &str, hash: InfoHash) -> Vec<FromTracker> {
    let Some(value) = parse(text) else {
        return Vec::new();
    };
    let own = to_binary_string(&hash.0);
    let mut said = Vec::new();
    // Of an error no more than its words is certain to be there.
    let about_us = value["info_hash"].as_str().is_none_or(|it| it == own);
    if let Some(reason) = value["failure reason"].as_str().filter(|_| about_us) {
        return vec![FromTracker::Refused {
            reason: shown(reason),
        }];
    }
    if let Some(words) = value["warning message"].as_str().filter(|_| about_us) {
        said.push(FromTracker::Warned {
            words: shown(words),
        });
    }
    match value["action"].as_str() {
        Some("announce") if value["info_hash"].as_str() == Some(&own) => {
            said.extend(read_announce(&value));
        }
        Some("scrape") => said.extend(read_scrape(&value["files"][&own])),
        _ => {}
    }
    said
}

fn read_announce(value: &Value) -> Option<FromTracker> {
    let id = |name: &str| from_binary_string(value[name].as_str()?);
    let sdp = |name: &str| {
        let is_named = value[name]["type"].as_str() == Some(name);
        value[name]["sdp"]
            .as_str()
            .filter(|_| is_named)
            .map(str::to_owned)
    };
    let passed_on = value["offer"].is_object() || value["answer"].is_object();
    if passed_on {
        let (from, offer_id) = (PeerId(id("peer_id")?), OfferId(id("offer_id")?));
        return match (sdp("offer"), sdp("answer")) {
            (Some(sdp), None) => Some(FromTracker::Offer {
                from,
                offer_id,
                sdp,
            }),
            (None, Some(sdp)) => Some(FromTracker::Answer {
                from,
                offer_id,
                sdp,
            }),
            _ => None,
        };
    }
    let interval_s = value["interval"].as_u64();
    let complete = count(&value["complete"]);
    let incomplete = count(&value["incomplete"]);
    // A tracker that confirms an answer says none of them.
    let says = interval_s.is_some() || complete.is_some() || incomplete.is_some();
    says.then_some(FromTracker::Counts {
        complete,
        incomplete,
        interval_s,
    })
}

fn read_scrape(file: &Value) -> Option<FromTracker> {
    Some(FromTracker::Scrape {
        complete: count(&file["complete"])?,
        incomplete: count(&file["incomplete"])?,
        downloaded: count(&file["downloaded"]).unwrap_or(0),
    })
}

fn count(value: &Value) -> Option<u32> {
    value
        .as_u64()
        .map(|count| u32::try_from(count).unwrap_or(u32::MAX))
}

/// A stranger's words, for one line of a page.
fn shown(text: &str) -> String {
    let plain = text.chars().filter(|char| !char.is_control());
    plain.take(SHOWN_CHARS_MAX).collect()
}
