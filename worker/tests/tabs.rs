//! Tabs in a simulated origin: kills, freezes, reordered messages and stolen locks at random.
//!
//! What must hold is written in `origin/page.rs` (every request ends once, with its own words in
//! their order) and here (afterwards there is one owner, and everybody is answered).
#![allow(clippy::unwrap_used)]

mod origin;

use origin::page::Ended;
use origin::{Origin, SimTab};
use protocol::{Command, ImportId, RequestId, TabRole};
use worker::tabs::TabInput;

const SEEDS: u64 = 2_000;
const STEPS: usize = 400;
const TABS_MAX: usize = 5;

fn page_says(origin: &mut Origin, at: usize, command: Command) {
    let attached = None;
    origin.give(at, TabInput::Page { command, attached });
}

/// Brings in a file of the page's own.
fn bring(origin: &mut Origin, at: usize) {
    let command = origin.tabs[at].page.import();
    let attached = Some(origin.attach(at));
    origin.give(at, TabInput::Page { command, attached });
}

fn ask(origin: &mut Origin, at: usize) {
    let command = origin.tabs[at].page.ask();
    page_says(origin, at, command);
}

/// One that the page has used, or one that it never will: its refusal comes late, and must not
/// meet a request that has begun since.
fn any_number(origin: &mut Origin, at: usize) -> u32 {
    let number = 1 + origin.dice.below(6) as u32;
    match number <= origin.tabs[at].page.last {
        true => number,
        false => 1_000_000 + number,
    }
}

/// One thing that a person, a browser or bad luck does.
fn disturb(origin: &mut Origin) {
    let living = origin.living();
    let Some(at) = living.get(origin.dice.below(living.len().max(1))).copied() else {
        origin.open("a");
        return;
    };
    let frozen = origin.tabs[at].frozen;
    match origin.dice.below(100) {
        0..=39 if !frozen => ask(origin, at),
        40..=49 if !frozen => bring(origin, at),
        // Any number, also of requests that are another tab's.
        50..=61 if !frozen => {
            let request = RequestId(any_number(origin, at));
            page_says(origin, at, Command::Stop { request });
        }
        62..=65 if !frozen => {
            let import = ImportId(any_number(origin, at));
            let discard = false;
            page_says(origin, at, Command::CancelImport { import, discard });
        }
        66..=77 => origin.kill(at),
        78..=84 => origin.tabs[at].frozen = !frozen,
        85..=91 if living.len() < TABS_MAX => {
            origin.open("a");
        }
        92..=94 if !frozen => page_says(origin, at, Command::TakeOver),
        95 => origin.sleep(30),
        _ => origin.tick_all(),
    }
}

/// Nothing disturbs any more: what must hold in the end.
fn check_peace(origin: &mut Origin, seed: u64) {
    for tab in &mut origin.tabs {
        tab.frozen = false;
    }
    if origin.living().is_empty() {
        origin.open("a");
    }
    origin.settle();
    let living = origin.living();
    let owners: Vec<usize> = living
        .iter()
        .copied()
        .filter(|at| origin.tabs[*at].tab.owns())
        .collect();
    assert_eq!(owners.len(), 1, "seed {seed}: owners {owners:?}");
    let owner = &origin.tabs[owners[0]];
    let is_idle = |tab: &SimTab| tab.session.as_ref().is_some_and(|one| one.is_idle());
    assert!(is_idle(owner), "seed {seed}: work for nobody is left");
    for at in &living {
        let tab = &origin.tabs[*at];
        assert!(
            tab.page.all_ended(),
            "seed {seed}: tab {at} waits for ever: {:?} {:?}",
            tab.page.asked,
            tab.page.imports,
        );
        assert!(
            tab.files.is_empty(),
            "seed {seed}: tab {at} keeps files of imports that have ended: {:?}",
            tab.files
        );
        assert!(
            tab.page.epochs.is_sorted(),
            "seed {seed}: {:?}",
            tab.page.epochs
        );
    }
    for at in &living {
        ask(origin, *at);
    }
    origin.settle();
    for at in &living {
        let last = origin.tabs[*at].page.asked.values().last().unwrap();
        let seen = (&origin.tabs[*at].page.role, &owners);
        assert_eq!(
            last.ended,
            Some(Ended::Whole),
            "seed {seed}: tab {at}: {seen:?}"
        );
    }
}

#[test]
fn every_request_ends_once_and_somebody_always_works() {
    let mut takeovers = 0;
    let mut ends = [0; 4];
    for seed in 0..SEEDS {
        let mut origin = Origin::new(seed);
        for _ in 0..1 + origin.dice.below(4) {
            origin.open("a");
        }
        for _ in 0..STEPS {
            if origin.dice.chance(12) {
                disturb(&mut origin);
            } else {
                origin.step();
            }
        }
        check_peace(&mut origin, seed);
        takeovers += origin.takeovers;
        for asked in origin.tabs.iter().flat_map(|tab| tab.page.asked.values()) {
            if let Some(how) = asked.ended {
                ends[how as usize] += 1;
            }
        }
    }
    println!("{SEEDS} runs, {takeovers} owners, whole, stopped, interrupted, failed: {ends:?}");
    // The runs are worth something only if all of it happened, and often.
    assert!(takeovers > 2 * SEEDS as u32 && ends[0] > 1_000 && ends[1] > 100 && ends[2] > 100);
}

/// Of two builds the one that a person loaded last gets the files, once nobody waits for an
/// answer; the others are told to load again, and nothing of theirs hangs.
#[test]
fn a_later_build_takes_the_work_over_in_the_end() {
    for seed in 0..500 {
        let mut origin = Origin::new(seed);
        for _ in 0..3 {
            origin.open("old");
        }
        for step in 0..STEPS {
            if step == STEPS / 3 {
                origin.open("new");
            }
            if origin.dice.chance(5) {
                let at = origin.dice.below(origin.tabs.len());
                ask(&mut origin, at);
            } else {
                origin.step();
            }
        }
        origin.settle();
        let newest = &origin.tabs[3];
        assert_eq!(newest.page.role.unwrap().0, TabRole::Owner, "seed {seed}");
        for at in 0..4 {
            let tab = &origin.tabs[at];
            assert!(
                tab.page.all_ended(),
                "seed {seed}: tab {at}: {:?}",
                tab.page.asked
            );
            let role = tab.page.role.unwrap().0;
            assert!(
                at == 3 || role == TabRole::Outdated,
                "seed {seed}: {role:?}"
            );
        }
        ask(&mut origin, 3);
        origin.settle();
        let last = origin.tabs[3].page.asked.values().last().unwrap();
        assert_eq!(last.ended, Some(Ended::Whole), "seed {seed}");
    }
}

/// The owner sleeps for good: it is called silent, and on a person's word the next one begins as
/// soon as the sleeper's files are free.
#[test]
fn a_sleeping_owner_is_passed_by_on_a_persons_word() {
    let mut origin = Origin::new(1);
    let owner = origin.open("a");
    let other = origin.open("a");
    origin.settle();
    assert!(origin.tabs[owner].tab.owns());
    origin.tabs[owner].frozen = true;
    ask(&mut origin, other);
    origin.settle();
    assert_eq!(origin.tabs[other].page.role.unwrap().0, TabRole::Silent);
    page_says(&mut origin, other, Command::TakeOver);
    origin.settle();
    assert!(origin.tabs[other].tab.owns());
    assert!(origin.tabs[other].page.all_ended(), "it was interrupted");
    // The sleeper wakes, hears that it owns nothing, and follows.
    origin.tabs[owner].frozen = false;
    origin.settle();
    assert!(!origin.tabs[owner].tab.owns());
    for at in [owner, other] {
        ask(&mut origin, at);
        origin.settle();
        let last = origin.tabs[at].page.asked.values().last().unwrap();
        assert_eq!(last.ended, Some(Ended::Whole));
    }
}

/// Progress of a download is seen in every tab, and only who asked for it can stop it.
#[test]
fn imports_are_seen_by_all_and_stopped_by_one() {
    let mut origin = Origin::new(7);
    let owner = origin.open("a");
    let other = origin.open("a");
    origin.settle();
    bring(&mut origin, other);
    let (import, discard) = (ImportId(1), false);
    page_says(
        &mut origin,
        owner,
        Command::CancelImport { import, discard },
    );
    origin.settle();
    assert!(origin.tabs[owner].page.elsewhere >= 5);
    assert_eq!(origin.tabs[other].page.elsewhere, 0);
    assert!(origin.tabs[other].page.all_ended());
}

/// M16: the device sleeps without a word. Whoever owned looks whether it still does before any
/// work goes on, and then it either goes on as if nothing had been, or begins anew.
#[test]
fn after_a_sleep_nothing_is_done_before_it_is_known_who_owns() {
    // The lock was not touched.
    let mut origin = Origin::new(3);
    let owner = origin.open("a");
    let other = origin.open("a");
    origin.settle();
    ask(&mut origin, other);
    origin.sleep(8 * 3600);
    let epochs = origin.tabs[other].page.epochs.len();
    origin.settle();
    assert_eq!(origin.tabs[owner].checks, 1);
    assert!(origin.tabs[owner].tab.owns());
    let last = origin.tabs[other].page.asked.values().last().unwrap();
    assert_eq!(last.ended, Some(Ended::Whole), "it went on");
    assert_eq!(origin.tabs[other].page.epochs.len(), epochs);

    // It was taken meanwhile, and the word of that is late.
    for seed in 0..200 {
        let mut origin = Origin::new(seed);
        let owner = origin.open("a");
        let other = origin.open("a");
        origin.settle();
        ask(&mut origin, owner);
        origin.tabs[owner].frozen = true;
        ask(&mut origin, other);
        origin.settle();
        page_says(&mut origin, other, Command::TakeOver);
        origin.sleep(3600);
        origin.tabs[owner].frozen = false;
        // The simulation fails at the first work that is done in doubt.
        origin.settle();
        assert!(origin.tabs[other].tab.owns(), "seed {seed}");
        check_peace(&mut origin, seed);
    }
}
