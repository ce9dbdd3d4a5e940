//! Every tab shares and receives: the owner's page has the connections and makes them for all.

mod world;

use protocol::{ClientId, Command, Event, Meeting, Met, Subject, SwarmCommand, SwarmEvent};
use worker::tabs::{Hub, HubOutput};
use world::models::small;

const OWNER: ClientId = ClientId(1);
const FIRST: ClientId = ClientId(2);
const SECOND: ClientId = ClientId(3);

fn hub() -> Hub {
    let mut hub = Hub::new(OWNER);
    assert!(hub.join(FIRST) && hub.join(SECOND));
    drain(&mut hub);
    hub
}

fn drain(hub: &mut Hub) -> Vec<HubOutput> {
    std::iter::from_fn(|| hub.poll()).collect()
}

fn says(hub: &mut Hub, client: ClientId, command: SwarmCommand) -> Vec<HubOutput> {
    hub.command(client, Command::Swarm(command), None);
    drain(hub)
}

fn session(command: SwarmCommand) -> HubOutput {
    HubOutput::Session(Command::Swarm(command), None)
}

fn tell(client: ClientId, event: SwarmEvent) -> HubOutput {
    HubOutput::Client(client, Event::Swarm(event))
}

fn share() -> SwarmCommand {
    SwarmCommand::Share {
        model: small().id(),
        trackers: Vec::new(),
        limit: None,
        seed: 7,
    }
}

#[test]
fn codes_are_made_by_the_page_with_the_connections() {
    let (mut hub, model) = (hub(), small().id());
    let answer = Meeting::Answer {
        model,
        code: "theirs".into(),
    };
    let offer = Meeting::Offer { model };
    // Two tabs at once, each hears of its own.
    let meet = |meeting: &Meeting| SwarmCommand::Meet(meeting.clone());
    for (client, meeting) in [(FIRST, &answer), (SECOND, &offer)] {
        let asked = says(&mut hub, client, meet(meeting));
        assert_eq!(asked, [tell(OWNER, SwarmEvent::Meet(meeting.clone()))]);
    }
    for (client, code) in [(FIRST, "first"), (SECOND, "second")] {
        let met = Met::Answer(code.into());
        let told = SwarmCommand::Met {
            model,
            met: met.clone(),
        };
        let told = says(&mut hub, OWNER, told);
        assert_eq!(told, [tell(client, SwarmEvent::Met { model, met })]);
    }
    // Nobody waits any more.
    let met = Met::Connecting;
    assert_eq!(says(&mut hub, OWNER, SwarmCommand::Met { model, met }), []);
}

#[test]
fn all_pages_see_what_is_shared_and_only_one_has_connections() {
    let (mut hub, model) = (hub(), small().id());
    let ended = || SwarmEvent::Ended { model };
    hub.event(Event::Swarm(ended()));
    let told = [OWNER, FIRST, SECOND].map(|client| tell(client, ended()));
    assert_eq!(drain(&mut hub), told);
    let close = || SwarmEvent::Close {
        link: 3,
        why: String::new(),
        is_lie: false,
    };
    hub.event(Event::Swarm(close()));
    assert_eq!(drain(&mut hub), [tell(OWNER, close())]);
    let refused = says(&mut hub, FIRST, SwarmCommand::Closed { link: 3 });
    let [HubOutput::Client(FIRST, Event::Failed { subject, .. })] = &refused[..] else {
        panic!("{refused:?}");
    };
    assert_eq!(*subject, Subject::Store);
}

#[test]
fn what_a_tab_shares_ends_with_the_last_that_shares_it() {
    let (mut hub, model) = (hub(), small().id());
    for client in [FIRST, SECOND] {
        assert_eq!(says(&mut hub, client, share()), [session(share())]);
    }
    hub.leave(FIRST);
    assert_eq!(drain(&mut hub), []);
    hub.leave(SECOND);
    let unshare = || SwarmCommand::Unshare { model };
    assert_eq!(drain(&mut hub), [session(unshare())]);
    // A word of any tab ends it for all.
    let mut hub = self::hub();
    says(&mut hub, FIRST, share());
    assert_eq!(says(&mut hub, SECOND, unshare()), [session(unshare())]);
    hub.leave(FIRST);
    assert_eq!(drain(&mut hub), []);
}
