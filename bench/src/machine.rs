//! What this machine is, what processes use of it, and how fast its memory is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_mib: u64,
    pub system: String,
}

impl Machine {
    pub fn here() -> Machine {
        let first = |file: &str, key: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(key));
            let value = line.and_then(|line| line.split_once(':'));
            value.map_or(String::new(), |(_, value)| value.trim().to_owned())
        };
        let total = first("/proc/meminfo", "MemTotal");
        let total = total.split(' ').next().and_then(|kib| kib.parse().ok());
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            processor: first("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: total.unwrap_or(0) / 1024,
            system: format!("Linux {}", release.trim()),
        }
    }
}

/// Nanoseconds of one thread: on a core, and ready but waiting for one.
type Times = (u64, u64);

/// Times of all threads of some processes, by thread.
pub struct Use(BTreeMap<u32, Times>);

/// What processes used between two moments.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Seconds of all threads together.
    pub cpu_s: f64,
    /// The share of their time that the busiest threads waited for a core.
    pub waited: f64,
}

impl Use {
    pub fn of(processes: &BTreeSet<u32>) -> Use {
        let mut times = BTreeMap::new();
        for process in processes {
            let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
                continue;
            };
            for thread in threads.flatten() {
                let number = thread.file_name().to_string_lossy().parse();
                let text = fs::read_to_string(thread.path().join("schedstat"));
                if let (Ok(number), Ok(text)) = (number, text) {
                    let mut words = text.split(' ').map(|word| word.parse().unwrap_or(0));
                    let pair = (words.next().unwrap_or(0), words.next().unwrap_or(0));
                    times.insert(number, pair);
                }
            }
        }
        Use(times)
    }

    /// From an earlier moment until this one; `threads` of them do the work.
    pub fn since(&self, earlier: &Use, threads: usize) -> Used {
        let mut spent: Vec<Times> = self
            .0
            .iter()
            .map(|(thread, (run, wait))| {
                let (run_before, wait_before) = earlier.0.get(thread).copied().unwrap_or_default();
                (
                    run.saturating_sub(run_before),
                    wait.saturating_sub(wait_before),
                )
            })
            .collect();
        spent.sort_unstable_by(|a, b| b.cmp(a));
        let cpu: u64 = spent.iter().map(|(run, _)| run).sum();
        let busiest = &spent[..threads.min(spent.len())];
        let run: u64 = busiest.iter().map(|(run, _)| run).sum();
        let wait: u64 = busiest.iter().map(|(_, wait)| wait).sum();
        Used {
            cpu_s: cpu as f64 / 1e9,
            waited: wait as f64 / (run + wait).max(1) as f64,
        }
    }
}

/// The processes that name a folder on their command line, and all that these started.
pub fn processes_of(folder: &Path) -> BTreeSet<u32> {
    let name = folder.as_os_str().as_encoded_bytes();
    let mut parents = BTreeMap::new();
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(process) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.windows(name.len()).any(|bytes| bytes == name) {
            found.insert(process);
        }
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in parentheses may hold anything.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        if let Some(Ok(parent)) = rest.split_whitespace().nth(1).map(str::parse::<u32>) {
            parents.insert(process, parent);
        }
    }
    loop {
        let before = found.len();
        for (process, parent) in &parents {
            if found.contains(parent) {
                found.insert(*process);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The greatest resident size that any of the processes ever had, in MiB.
pub fn peak_mib(processes: &BTreeSet<u32>) -> f64 {
    let peak = |process: &u32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    processes.iter().filter_map(peak).max().unwrap_or(0) as f64 / 1024.0
}

/// Gigabytes a second that so many threads read together from memory, one value a pass.
pub fn bandwidth(threads: usize, passes: usize) -> Vec<f64> {
    // Far larger than any cache.
    const WORDS: usize = (1 << 30) / 8;
    let memory = vec![1_u64; WORDS];
    let share = WORDS / threads;
    (0..passes)
        .map(|_| {
            let start = Instant::now();
            std::thread::scope(|scope| {
                for part in memory.chunks_exact(share) {
                    scope.spawn(|| black_box(sum(part)));
                }
            });
            (WORDS * 8) as f64 / start.elapsed().as_secs_f64() / 1e9
        })
        .collect()
}

/// Many sums at once, so that no addition waits for the one before it.
fn sum(words: &[u64]) -> u64 {
    let mut sums = [0_u64; 32];
    for chunk in words.as_chunks::<32>().0 {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().fold(0, |sum, part| sum.wrapping_add(*part))
}
