//! Two worlds whose pages are connected.

use std::sync::atomic::{AtomicU64, Ordering};

use format::{ModelId, PieceIndex};
use protocol::{Command, Event, ImportId, ImportSource, InvitedModel, SwarmCommand, SwarmEvent};
use store::{Catalog, Disk, names};
use worker::Input;

use super::World;
use super::models::Stored;

/// No two sessions have the same.
fn seed() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(1 << 40);
    LAST.fetch_add(1 << 32, Ordering::Relaxed)
}

impl World {
    /// A started session that has this model and gives it.
    pub fn giving(model: &Stored) -> World {
        let mut world = World::with(model);
        world.share(model.id());
        world.run();
        world
    }

    pub(super) fn read_stored(&mut self, model: ModelId, piece: PieceIndex) {
        let (at, len) = model.piece_range(piece);
        let mut bytes = vec![0; len as usize];
        let disk = self.directory.open(&names::done(model.root));
        let read = disk.and_then(|disk| disk.read_at(at, &mut bytes));
        let bytes = read.is_ok().then_some(bytes);
        self.give(Input::StoredRead {
            model,
            piece,
            bytes,
        });
    }

    pub fn share(&mut self, model: ModelId) {
        self.command(Command::Swarm(SwarmCommand::Share {
            model,
            trackers: Vec::new(),
            limit: None,
            seed: seed(),
        }));
    }

    /// Asks peers for a model; does not run.
    pub fn ask_peers(&mut self, model: &Stored, gives: bool) -> ImportId {
        self.invited(InvitedModel {
            id: model.id(),
            name: "invited".into(),
            sources: Vec::new(),
            trackers: Vec::new(),
            gives,
            seed: seed(),
        })
    }

    pub fn invited(&mut self, invited: InvitedModel) -> ImportId {
        self.imports += 1;
        let import = ImportId(self.imports);
        let source = ImportSource::Invite(invited);
        self.command(Command::Import { import, source });
        import
    }

    pub fn opened(&mut self, model: ModelId, link: u32, key: [u8; 20]) {
        let opened = SwarmCommand::Opened { model, link, key };
        self.command(Command::Swarm(opened));
    }

    /// Connections that were to be closed, and why.
    pub fn closed(&self) -> Vec<(u32, String)> {
        let closed = self.events.iter().filter_map(|event| match event {
            Event::Swarm(SwarmEvent::Close { link, why, .. }) => Some((*link, why.clone())),
            _ => None,
        });
        closed.collect()
    }
}

/// A connection of that number in both worlds.
pub fn connect(a: &mut World, b: &mut World, model: ModelId, link: u32) {
    a.opened(model, link, [1; 20]);
    b.opened(model, link, [2; 20]);
}

/// Carries messages between them until neither has any; `most` ends it earlier.
pub fn talk(a: &mut World, b: &mut World, most: usize) -> usize {
    let mut carried = 0;
    while carried < most {
        let did = a.step() | b.step();
        let passed = pass(a, b) + pass(b, a);
        if !did && passed == 0 {
            break;
        }
        carried += passed;
    }
    // Long enough for a report.
    for world in [a, b] {
        world.now_ms += 1_000;
        world.give(Input::Time);
    }
    carried
}

fn pass(from: &mut World, to: &mut World) -> usize {
    let Some((link, bytes)) = from.said.pop_front() else {
        return 0;
    };
    let drained = SwarmCommand::Drained {
        link,
        bytes: bytes.len() as u32,
    };
    to.give(Input::PeerSaid { link, bytes });
    from.command(Command::Swarm(drained));
    1
}
