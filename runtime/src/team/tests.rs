use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::vec::Vec;

use protocol::abi::{MEET_LATE, MEET_SOUND};

use super::*;

#[test]
fn shares_cover_the_whole_in_units() {
    for (count, unit) in [(0, 4), (1, 4), (9, 4), (64, 4), (576, 64), (49152, 4)] {
        for workers in 1..=9 {
            let mut at = 0;
            for worker in 0..workers {
                let share = split(count, unit, workers, worker);
                assert_eq!(share.start, at);
                assert!(share.is_empty() || share.start.is_multiple_of(unit));
                at = share.end;
            }
            assert_eq!(at, count);
        }
    }
}

#[test]
fn every_worker_runs_once_and_the_lowest_failure_is_told() {
    for team in [Team::solo(), Team::threads(3).unwrap()] {
        let runs = AtomicUsize::new(0);
        let lowest = team.workers().min(2) - 1;
        let codes = [
            TrResult::Bounds,
            TrResult::Alignment,
            TrResult::InvalidModel,
        ];
        let told = team.run(|worker| {
            runs.fetch_add(1 << (8 * worker), Relaxed);
            match worker >= lowest {
                true => Err(codes[worker]),
                false => Ok(()),
            }
        });
        assert_eq!(told, Err(codes[lowest]));
        assert_eq!(runs.into_inner(), 0x010101 >> (8 * (3 - team.workers())));
        // A failed share is no lost worker.
        assert_eq!(team.run(|_| Ok(())), Ok(()));
    }
}

/// Enough meetings that some find everybody awake and some everybody asleep.
#[test]
fn no_share_is_lost_or_run_twice() {
    let team = Team::threads(4).unwrap();
    for round in 0..3000u32 {
        let mut seen = [0; 4];
        let cells: Vec<_> = seen.iter_mut().map(std::sync::Mutex::new).collect();
        team.run(|worker| {
            **cells[worker].lock().unwrap() += 1;
            Ok(())
        })
        .unwrap();
        drop(cells);
        assert_eq!(seen, [1; 4]);
        if round % 500 == 0 {
            thread::sleep(Duration::from_millis(5));
        }
    }
    assert!((0..4).all(|worker| team.shares(worker) == 3000));
}

#[test]
fn a_meeting_within_a_meeting_is_refused() {
    let team = Team::threads(2).unwrap();
    let told = team.run(|_| team.run(|_| Ok(())));
    assert_eq!(told, Err(TrResult::IllegalState));
    assert_eq!(team.run(|_| Ok(())), Ok(()));
}

#[test]
fn a_panicking_worker_fails_this_and_every_later_meeting() {
    let team = Team::threads(3).unwrap();
    let told = team.run(|worker| match worker {
        2 => panic!("a worker's fault, injected"),
        _ => Ok(()),
    });
    assert_eq!(told, Err(TrResult::WorkerFailure));
    assert_eq!(team.run(|_| Ok(())), Err(TrResult::WorkerFailure));
}

#[test]
fn a_panicking_caller_waits_for_its_workers() {
    let team = Team::threads(2).unwrap();
    let finished = AtomicUsize::new(0);
    let unwound = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        team.run(|worker| {
            match worker {
                0 => panic!("the caller's fault, injected"),
                _ => thread::sleep(Duration::from_millis(50)),
            }
            finished.fetch_add(1, Relaxed);
            Ok(())
        })
    }));
    assert!(unwound.is_err());
    assert_eq!(finished.load(Relaxed), 1);
    assert_eq!(team.run(|_| Ok(())), Ok(()));
}

/// Worker 2 of this team was never started.
fn with_an_absent_worker() -> Team {
    let meeting = Arc::new(Meeting::new(3));
    meeting.set_patience(1);
    let threads = threads::Threads::start(&meeting, 2).unwrap();
    Team {
        meeting,
        _threads: Some(Arc::new(threads)),
    }
}

#[test]
fn a_worker_that_never_comes_fails_the_meeting() {
    let team = with_an_absent_worker();
    let runs = AtomicUsize::new(0);
    let told = team.run(|_| {
        runs.fetch_add(1, Relaxed);
        Ok(())
    });
    assert_eq!(told, Err(TrResult::WorkerFailure));
    assert_eq!(runs.load(Relaxed), 2);
    // Never again with fewer.
    assert_eq!(team.run(|_| Ok(())), Err(TrResult::WorkerFailure));
}

/// The absent worker comes when the caller has given up: what it would run is gone, so it leaves.
#[test]
fn a_worker_that_comes_too_late_leaves() {
    let team = with_an_absent_worker();
    assert_eq!(team.run(|_| Ok(())), Err(TrResult::WorkerFailure));
    let (meeting, (told, left)) = (Arc::clone(&team.meeting), mpsc::channel());
    let late = thread::spawn(move || {
        meeting.attend(2, |_| Ok(()));
        told.send(()).unwrap();
    });
    left.recv_timeout(Duration::from_secs(60)).unwrap();
    late.join().unwrap();
    assert_eq!(team.shares(2), 0);
}

/// A share longer than the patience is waited for: it holds the caller's memory.
#[test]
fn a_slow_worker_is_waited_for_and_ends_the_team() {
    let team = Team::threads(2).unwrap();
    team.meeting.set_patience(1);
    let finished = AtomicUsize::new(0);
    let told = team.run(|worker| {
        if worker == 1 {
            thread::sleep(Duration::from_millis(600));
            finished.fetch_add(1, Relaxed);
        }
        Ok(())
    });
    assert_eq!(told, Err(TrResult::WorkerFailure));
    assert_eq!(finished.load(Relaxed), 1);
    assert_eq!(team.run(|_| Ok(())), Err(TrResult::WorkerFailure));
}

#[test]
fn only_the_request_that_is_meant_is_stopped() {
    let team = Team::threads(2).unwrap();
    let stopper = team.stopper();
    team.serve(7);
    assert_eq!(team.run(|_| team.check()), Ok(()));
    stopper.stop(6);
    assert_eq!(team.run(|_| team.check()), Ok(()));
    // A stop in the middle of a share is seen there.
    let told = team.run(|_| {
        stopper.stop(7);
        team.check()
    });
    assert_eq!(told, Err(TrResult::Cancelled));
    assert_eq!(team.run(|_| Ok(())), Err(TrResult::Cancelled));
    team.serve(8);
    assert_eq!(team.run(|_| team.check()), Ok(()));
    stopper.stop(0);
    team.serve(0);
    assert_eq!(team.run(|_| team.check()), Ok(()));
}

#[test]
fn fewer_workers_can_be_asked() {
    let team = Team::threads(4).unwrap();
    for workers in [4, 2, 1, 3] {
        team.meeting.set_workers(workers).unwrap();
        let runs = AtomicUsize::new(0);
        team.run(|worker| {
            runs.fetch_or(1 << worker, Relaxed);
            Ok(())
        })
        .unwrap();
        assert_eq!(runs.into_inner(), (1 << workers) - 1);
    }
}

#[test]
fn no_workers_and_too_many_are_refused() {
    for workers in [0, WORKERS_MAX + 1] {
        let refused = Team::threads(workers).err().unwrap();
        assert_eq!(refused.code(), TrResult::InvalidArgument);
    }
    assert_eq!(Team::threads(WORKERS_MAX).unwrap().workers(), WORKERS_MAX);
}

/// What the lanes ask of their workers, natively.
#[test]
fn a_rehearsal_counts_every_share_and_product() {
    let team = Team::threads(3).unwrap();
    let mut rehearsal = rehearsal::Rehearsal::new(crate::Kernels::best()).unwrap();
    let meet = rehearsal.run(&team, 5);
    assert_eq!(
        (meet.fault, meet.shares, meet.present),
        (MEET_SOUND, 15, 0b111)
    );
    assert!(meet.products >= 15);
    let meet = rehearsal.run(&with_an_absent_worker(), 5);
    assert_eq!(meet.fault, MEET_LATE);
}
