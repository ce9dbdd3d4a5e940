//! The compact form: everything of a description in about 100 bytes.
//!
//! ```text
//! u8          role: 0 offer, 1 active answer, 2 passive answer
//! u8, bytes   ufrag
//! u8, bytes   password
//! 32 bytes    fingerprint
//! u8          number of candidates, each:
//!     u8          kind (0 host, 1 reflexive, 2 relayed) + 16 * family (0 IPv4, 1 IPv6, 2 local)
//!     4 or 16     address, or the UUID of a local name
//!     u16         port, big endian, as addresses are
//! ```

use super::{Address, CANDIDATES_MAX, Candidate, CandidateKind, Description, Role};
use crate::{P2pError, SignalFault};

impl Description {
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, P2pError> {
        self.check()?;
        let mut out = vec![match self.role {
            Role::Offer => 0,
            Role::ActiveAnswer => 1,
            Role::PassiveAnswer => 2,
        }];
        for text in [&self.ufrag, &self.password] {
            // At most 128 bytes, as `check` saw.
            out.push(text.len() as u8);
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(&self.fingerprint);
        out.push(self.candidates.len() as u8);
        for candidate in &self.candidates {
            let kind = match candidate.kind {
                CandidateKind::Host => 0,
                CandidateKind::Reflexive => 1,
                CandidateKind::Relayed => 2,
            };
            let (family, address) = match candidate.address {
                Address::V4(v4) => (0, v4.octets().to_vec()),
                Address::V6(v6) => (1, v6.octets().to_vec()),
                Address::Local(uuid) => (2, uuid.to_vec()),
            };
            out.push(kind + 16 * family);
            out.extend_from_slice(&address);
            out.extend_from_slice(&candidate.port.to_be_bytes());
        }
        Ok(out)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Description, P2pError> {
        let mut rest = bytes;
        let description = parse(&mut rest).ok_or(SignalFault::Damaged)?;
        if !rest.is_empty() {
            return Err(SignalFault::Damaged.into());
        }
        description.check()?;
        Ok(description)
    }
}

fn parse(rest: &mut &[u8]) -> Option<Description> {
    let role = match take_byte(rest)? {
        0 => Role::Offer,
        1 => Role::ActiveAnswer,
        2 => Role::PassiveAnswer,
        _ => return None,
    };
    let ufrag = take_text(rest)?;
    let password = take_text(rest)?;
    let fingerprint = take(rest)?;
    let count = usize::from(take_byte(rest)?);
    if count > CANDIDATES_MAX {
        return None;
    }
    let mut candidates = Vec::with_capacity(count);
    for _ in 0..count {
        candidates.push(take_candidate(rest)?);
    }
    Some(Description {
        role,
        ufrag,
        password,
        fingerprint,
        candidates,
    })
}

fn take_candidate(rest: &mut &[u8]) -> Option<Candidate> {
    let head = take_byte(rest)?;
    let kind = match head % 16 {
        0 => CandidateKind::Host,
        1 => CandidateKind::Reflexive,
        2 => CandidateKind::Relayed,
        _ => return None,
    };
    let address = match head / 16 {
        0 => Address::V4(take::<4>(rest)?.into()),
        1 => Address::V6(take::<16>(rest)?.into()),
        2 => Address::Local(take(rest)?),
        _ => return None,
    };
    let port = u16::from_be_bytes(take(rest)?);
    Some(Candidate {
        kind,
        address,
        port,
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (now, later) = rest.split_first_chunk::<N>()?;
    *rest = later;
    Some(*now)
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    take::<1>(rest).map(|[byte]| byte)
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let len = usize::from(take_byte(rest)?);
    let (now, later) = rest.split_at_checked(len)?;
    *rest = later;
    String::from_utf8(now.to_vec()).ok()
}
