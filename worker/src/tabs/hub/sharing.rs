//! Models that pages share. Connections are the owner's page's, so it makes them for all.

use format::ModelId;
use protocol::{ClientId, Command, Event, Stage, Subject, SwarmCommand, SwarmEvent};

use super::Hub;
use crate::words;

impl Hub {
    pub(super) fn swarm(&mut self, client: ClientId, command: SwarmCommand) {
        match command {
            SwarmCommand::Share { model, .. } => {
                if !self.shares.contains(&(client, model)) {
                    self.shares.push((client, model));
                }
                self.session(Command::Swarm(command));
            }
            // Whoever says it means all.
            SwarmCommand::Unshare { model } => {
                self.shares.retain(|(_, shared)| *shared != model);
                self.session(Command::Swarm(command));
            }
            SwarmCommand::Meet(meeting) => {
                self.meetings.push((client, meeting.model()));
                self.tell(self.me, Event::Swarm(SwarmEvent::Meet(meeting)));
            }
            _ if client != self.me => {
                let what = "the tab that does the work has the connections";
                let error = words::illegal(Stage::Store, what, "go on as before");
                let subject = Subject::Store;
                self.tell(client, Event::Failed { subject, error });
            }
            SwarmCommand::Met { model, met } => {
                let mut asked = self.meetings.iter();
                if let Some(at) = asked.position(|(_, asked)| *asked == model) {
                    let (asker, _) = self.meetings.remove(at);
                    let met = SwarmEvent::Met { model, met };
                    self.tell(asker, Event::Swarm(met));
                }
            }
            SwarmCommand::Opened { .. }
            | SwarmCommand::Closed { .. }
            | SwarmCommand::Drained { .. } => self.session(Command::Swarm(command)),
        }
    }

    pub(super) fn of_swarm(&mut self, event: SwarmEvent) {
        match event {
            SwarmEvent::Status(_) | SwarmEvent::Ended { .. } => {
                self.tell_all(&Event::Swarm(event));
            }
            _ => self.tell(self.me, Event::Swarm(event)),
        }
    }

    /// What nobody else shares ends with its tab.
    pub(super) fn share_no_more(&mut self, client: ClientId) {
        self.meetings.retain(|(asker, _)| *asker != client);
        let shared = self.shares.iter().filter(|(of, _)| *of == client);
        let shared: Vec<ModelId> = shared.map(|(_, model)| *model).collect();
        self.shares.retain(|(of, _)| *of != client);
        for model in shared {
            if !self.shares.iter().any(|(_, other)| *other == model) {
                self.session(Command::Swarm(SwarmCommand::Unshare { model }));
            }
        }
    }
}
