//! Every command wherever a tab stands: it reaches the session or the owner, is held until there is
//! one, or is refused. None is forgotten.

mod asked;
mod world;

use asked::{answer, commands};
use protocol::{Call, ClientId, Command, Edition, Epoch, Tell, ToClient};
use worker::tabs::{Tab, TabInput, TabOutput};
use world::models::small;

/// Where a tab stands, and what it does with a command then: `s` gives it to its session, `k` asks
/// the owner, `h` holds it until there is one, `r` refuses it, `t` takes the lock.
const STANDS: [(&str, char); 7] = [
    ("seeking", 'h'),
    ("not yet welcomed", 'h'),
    ("following", 'k'),
    ("owning", 's'),
    ("in doubt after a sleep", 'h'),
    ("silent", 'h'),
    ("outdated", 'r'),
];

fn edition(build: &str, opened_ms: u64) -> Edition {
    Edition {
        build: build.into(),
        opened_ms,
    }
}

fn drain(tab: &mut Tab) -> Vec<TabOutput> {
    std::iter::from_fn(|| tab.poll()).collect()
}

fn tab_in(stand: &str) -> Tab {
    let mut tab = Tab::new(ClientId(5), edition("a", 2));
    let epoch = Epoch(77);
    let owner = |build, opened_ms| {
        let edition = edition(build, opened_ms);
        TabInput::Call(Call::Owner { epoch, edition })
    };
    match stand {
        "not yet welcomed" => tab.handle(owner("a", 1)),
        "following" => {
            tab.handle(owner("a", 1));
            let tell = Tell::Welcome;
            tab.handle(TabInput::Told(ToClient { epoch, tell }));
        }
        "owning" => tab.handle(TabInput::Granted { now_ms: 1 }),
        "in doubt after a sleep" => {
            tab.handle(TabInput::Granted { now_ms: 1 });
            tab.handle(TabInput::Tick { now_ms: 1_000 });
            tab.handle(TabInput::Tick { now_ms: 90_000 });
        }
        "silent" => (0..20).for_each(|at| {
            tab.handle(TabInput::Tick { now_ms: at * 1_000 });
        }),
        "outdated" => tab.handle(owner("b", 9)),
        _ => {}
    }
    drain(&mut tab);
    tab
}

#[test]
fn every_command_wherever_a_tab_stands() {
    for (stand, usual) in STANDS {
        for (name, command) in commands(small().id()) {
            let cell = format!("{name} while {stand}");
            let mut tab = tab_in(stand);
            let attached = None;
            let asked = command.clone();
            tab.handle(TabInput::Page {
                command: asked,
                attached,
            });
            let outputs = drain(&mut tab);
            let how = |output: &TabOutput| match output {
                TabOutput::Session { command: given, .. } => Some((
                    's',
                    std::mem::discriminant(given) == std::mem::discriminant(&command),
                )),
                TabOutput::Ask { .. } => Some(('k', true)),
                TabOutput::Steal => Some(('t', true)),
                TabOutput::Page(event) => {
                    let refused = answer(&command, event)?;
                    Some(('r', !refused))
                }
                _ => None,
            };
            let found = outputs.iter().find_map(how);
            let expected = match (&command, stand, usual) {
                // Only a silent owner may be robbed, and only an own number can be stopped.
                (Command::TakeOver, "silent", _) => 't',
                (_, "in doubt after a sleep", _) => 'h',
                (Command::TakeOver, ..) => 'r',
                (Command::Stop { .. } | Command::CancelImport { .. }, "owning", _) => 'r',
                (_, _, usual) => usual,
            };
            match found {
                Some((way, is_right)) => assert!(is_right && way == expected, "{cell}: {way}"),
                None => {
                    assert_eq!(expected, 'h', "{cell}: silence; {outputs:?}");
                    check_held(&mut tab, &command, stand, &cell);
                }
            }
        }
    }
}

/// What is held is not forgotten: it goes to the session as soon as this tab owns for certain.
fn check_held(tab: &mut Tab, command: &Command, stand: &str, cell: &str) {
    match stand {
        "in doubt after a sleep" => tab.handle(TabInput::Checked { is_well: true }),
        _ => tab.handle(TabInput::Granted { now_ms: 9 }),
    }
    let outputs = drain(tab);
    let reached = outputs.iter().any(|output| match output {
        TabOutput::Session { command: given, .. } => {
            std::mem::discriminant(given) == std::mem::discriminant(command)
        }
        TabOutput::Page(event) => answer(command, event).is_some(),
        _ => false,
    });
    assert!(reached, "{cell}: forgotten; {outputs:?}");
}
