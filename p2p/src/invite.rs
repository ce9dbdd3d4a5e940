//! The link that one person gives to another: which model, and where it may be had.
//!
//! The text is the fragment of the program's address, so no server ever sees it:
//!
//! `slm1=ROOT&len=BYTES&name=NAME&src=URL&src=URL&tr=URL&offer=CODE`
//!
//! The first field names the version and holds the root, 64 hexadecimal digits. `src` are
//! addresses of the `.slm` file (http or https), `tr` those of trackers (ws or wss); `offer` is the
//! first code of a handshake without any server, for one person only. Values are
//! percent-encoded UTF-8: everything but letters, digits, `-`, `.`, `_` and `~` is escaped.
//!
//! An invite is a claim by a stranger. Its name is for display only; the root decides what is
//! accepted, and an address is used only after the person agreed.

use format::{Digest, ModelId, PIECE_BYTES, Root};

use crate::{P2pError, offer_tag};

/// Longest text. Chat programs cut longer links, and a QR code of 4096 bytes cannot be made.
pub const INVITE_BYTES_MAX: usize = 4096;
/// Longest name, in bytes of UTF-8; the same as a model's own.
pub const NAME_BYTES_MAX: usize = format::NAME_BYTES_MAX as usize;
/// Most addresses of each kind.
pub const ADDRESSES_MAX: usize = 8;
pub const ADDRESS_BYTES_MAX: usize = 1024;
/// Longest file: as many pieces as an index can name.
pub const LENGTH_MAX: u64 = u32::MAX as u64 * PIECE_BYTES as u64;

const FIRST: &str = "slm1=";
const SOURCE_SCHEMES: [&str; 2] = ["https://", "http://"];
const TRACKER_SCHEMES: [&str; 2] = ["wss://", "ws://"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invite {
    pub id: ModelId,
    /// For display only.
    pub name: String,
    /// Addresses of the `.slm` file that answer Range requests.
    pub sources: Vec<String>,
    /// Addresses of trackers that speak the WebTorrent protocol.
    pub trackers: Vec<String>,
    /// A code that [`read_code`](crate::read_code) takes.
    pub offer: Option<String>,
}

impl Invite {
    /// Reads the fragment, with or without its `#`.
    pub fn parse(text: &str) -> Result<Invite, P2pError> {
        let text = text.strip_prefix('#').unwrap_or(text);
        check_size(text)?;
        let mut at = FIRST.len();
        let mut parts = text
            .strip_prefix(FIRST)
            .ok_or(P2pError::NotAnInvite)?
            .split('&');
        let root = parts
            .next()
            .and_then(Digest::from_hex)
            .ok_or(P2pError::BadRoot)?;
        at += 64 + 1;

        let (mut length, mut name, mut offer) = (None, None, None);
        let (mut sources, mut trackers) = (Vec::new(), Vec::new());
        for part in parts {
            let (key, value) = part.split_once('=').ok_or(P2pError::UnknownField { at })?;
            let value_at = at + key.len() + 1;
            match key {
                "len" => set_once(&mut length, "len", parse_length(value)?)?,
                "name" => set_once(&mut name, "name", decode(value, value_at, "name")?)?,
                "src" => push(&mut sources, "src", decode(value, value_at, "src")?)?,
                "tr" => push(&mut trackers, "tr", decode(value, value_at, "tr")?)?,
                "offer" => set_once(&mut offer, "offer", decode(value, value_at, "offer")?)?,
                _ => return Err(P2pError::UnknownField { at }),
            }
            at += part.len() + 1;
        }
        let length = length.ok_or(P2pError::MissingField { field: "len" })?;
        let name = name.ok_or(P2pError::MissingField { field: "name" })?;
        let id = ModelId {
            root: Root(root),
            length,
        };
        let invite = Invite {
            id,
            name,
            sources,
            trackers,
            offer,
        };
        invite.check()?;
        Ok(invite)
    }

    /// The fragment without its `#`. Reading it gives this invite back.
    pub fn to_text(&self) -> Result<String, P2pError> {
        self.check()?;
        let ModelId { root, length } = self.id;
        let mut text = format!("{FIRST}{root}&len={length}&name={}", encode(&self.name));
        for source in &self.sources {
            text.push_str("&src=");
            text.push_str(&encode(source));
        }
        for tracker in &self.trackers {
            text.push_str("&tr=");
            text.push_str(&encode(tracker));
        }
        if let Some(offer) = &self.offer {
            text.push_str("&offer=");
            text.push_str(offer);
        }
        check_size(&text)?;
        Ok(text)
    }

    fn check(&self) -> Result<(), P2pError> {
        if !(1..=LENGTH_MAX).contains(&self.id.length) {
            return Err(P2pError::BadLength);
        }
        let name = &self.name;
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            return Err(P2pError::BadName);
        }
        if let Some(offer) = &self.offer {
            offer_tag(offer)?;
        }
        check_addresses("src", &self.sources, SOURCE_SCHEMES)?;
        check_addresses("tr", &self.trackers, TRACKER_SCHEMES)
    }
}

fn check_size(text: &str) -> Result<(), P2pError> {
    let (found, max) = (text.len(), INVITE_BYTES_MAX);
    match found > max {
        true => Err(P2pError::TooLong { found, max }),
        false => Ok(()),
    }
}

/// Addresses come from strangers: anything a browser would do something else with than fetch or
/// connect is refused by its scheme.
fn check_addresses(
    field: &'static str,
    addresses: &[String],
    schemes: [&str; 2],
) -> Result<(), P2pError> {
    if addresses.len() > ADDRESSES_MAX {
        return Err(P2pError::TooManyAddresses {
            field,
            max: ADDRESSES_MAX,
        });
    }
    for (index, address) in addresses.iter().enumerate() {
        let rest = schemes
            .iter()
            .find_map(|scheme| address.strip_prefix(scheme));
        let hosted =
            rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#']));
        let plain = address.bytes().all(|byte| byte.is_ascii_graphic());
        if !hosted || !plain || address.len() > ADDRESS_BYTES_MAX {
            return Err(P2pError::BadAddress { field, index });
        }
    }
    Ok(())
}

fn set_once<T>(slot: &mut Option<T>, field: &'static str, value: T) -> Result<(), P2pError> {
    match slot.replace(value) {
        Some(_) => Err(P2pError::DuplicateField { field }),
        None => Ok(()),
    }
}

fn push(list: &mut Vec<String>, field: &'static str, value: String) -> Result<(), P2pError> {
    if list.len() == ADDRESSES_MAX {
        return Err(P2pError::TooManyAddresses {
            field,
            max: ADDRESSES_MAX,
        });
    }
    list.push(value);
    Ok(())
}

fn parse_length(text: &str) -> Result<u64, P2pError> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    match text.parse() {
        Ok(length) if canonical => Ok(length),
        _ => Err(P2pError::BadLength),
    }
}

fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Takes unescaped characters, too: programs that show links decode some of the escapes.
fn decode(text: &str, at: usize, field: &'static str) -> Result<String, P2pError> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let byte = bytes[index];
        let wrong = P2pError::BadEscape { at: at + index };
        if byte == b'%' {
            let digit = |offset: usize| {
                let byte = bytes.get(index + offset).copied()?;
                char::from(byte).to_digit(16)
            };
            let (Some(high), Some(low)) = (digit(1), digit(2)) else {
                return Err(wrong);
            };
            out.push((high * 16 + low) as u8);
            index += 3;
        } else if byte <= b' ' || byte == 0x7f {
            return Err(wrong);
        } else {
            out.push(byte);
            index += 1;
        }
    }
    String::from_utf8(out).map_err(|_| P2pError::NotUtf8 { field })
}
