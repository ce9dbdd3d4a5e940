//! One peer of a small swarm says whatever the bytes say. The fuzz target `swarm` and the
//! replay of its corpus in `corpus.rs` share this.
//!
//! The first byte chooses what the swarm has and wants; then messages follow, each after its length
//! as u16, little endian.

use format::{ModelId, PIECE_BYTES, PieceIndex, PieceLayer};
use p2p::{Hello, Input, LinkId, Message, Output, PeerKey, Sharing, Swarm, Want};

const LINK: LinkId = LinkId(1);
/// All that one peer can make a swarm hold: what arrives, what is given out.
const HELD_MAX: u64 = 24 * 1024 * 1024;

/// Two pieces and a leaf of zeros.
fn model() -> PieceLayer {
    let mut hasher = format::Hasher::default();
    hasher.update(&vec![0; 2 * PIECE_BYTES as usize + 1]);
    hasher.finish()
}

pub fn run(bytes: &[u8]) {
    let Some((&choice, mut rest)) = bytes.split_first() else {
        return;
    };
    let layer = model();
    let Ok(mut swarm) = Swarm::new(layer.id, 1) else {
        return;
    };
    let has = |piece: u32| choice & (1 << piece) != 0;
    for piece in (0..layer.id.pieces()).filter(|piece| has(*piece)) {
        let piece = PieceIndex(piece);
        swarm.handle(0, Input::Stored { piece });
    }
    if has(3) {
        swarm.handle(0, Input::Layer(layer.clone()));
    }
    let sharing = if has(4) { Sharing::On } else { Sharing::Off };
    swarm.handle(0, Input::Share(sharing));
    swarm.handle(0, Input::Want(Want::All));
    let key = PeerKey([1; 20]);
    swarm.handle(0, Input::Opened { link: LINK, key });
    if has(5) {
        let hello = Message::Hello(Hello::new(layer.id, 2)).encode();
        let bytes = &hello;
        swarm.handle(0, Input::Message { link: LINK, bytes });
    }
    let mut now_ms = 0;
    while drain(&mut swarm, now_ms, layer.id)
        && let Some((len, after)) = rest.split_first_chunk::<2>()
    {
        let len = usize::from(u16::from_le_bytes(*len)).min(after.len());
        let (bytes, after) = after.split_at(len);
        rest = after;
        now_ms += 100;
        swarm.handle(now_ms, Input::Message { link: LINK, bytes });
        assert!(swarm.held_bytes() <= HELD_MAX);
    }
}

/// Does what the swarm wants; `false` when it has left the peer.
fn drain(swarm: &mut Swarm, now_ms: u64, id: ModelId) -> bool {
    while let Some(output) = swarm.poll() {
        match output {
            Output::Close { .. } => return false,
            Output::Read { piece } => {
                let (_, len) = id.piece_range(piece);
                let bytes = Some(vec![0; len as usize]);
                swarm.handle(now_ms, Input::Read { piece, bytes });
            }
            Output::Store(whole) => {
                let (piece, bytes) = (whole.piece(), whole.into_bytes());
                assert!(bytes.iter().all(|byte| *byte == 0));
                swarm.handle(now_ms, Input::Stored { piece });
            }
            Output::Send { bytes, .. } => {
                let bytes = bytes.len() as u32;
                swarm.handle(now_ms, Input::Drained { link: LINK, bytes });
            }
            Output::Fetch { .. } | Output::Layer(_) | Output::Finished | Output::WakeAt(_) => {}
        }
    }
    true
}
