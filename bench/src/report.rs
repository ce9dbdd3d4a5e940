//! Medians, ratios, and the table in Markdown.

use std::fmt::Write;

use crate::bundle::{Bundle, Entry, ModelResults};
use crate::task::{FIRST_TOKEN, FLOORS, Floor, SHARE_OF_MEMORY, Work};

/// More of a thread's time than this spent waiting makes the clock useless.
const WAITED: f64 = 0.04;

pub fn markdown(bundle: &Bundle) -> String {
    let machine = &bundle.machine;
    let mut text = format!(
        "# Comparison\n\n{}, {} cores, {} MiB, {}.\n",
        machine.processor, machine.cores, machine.memory_mib, machine.system
    );
    for results in &bundle.models {
        // Writing to a string cannot fail.
        model(&mut text, results).ok();
    }
    text
}

fn model(text: &mut String, results: &ModelResults) -> std::fmt::Result {
    writeln!(text, "\n## {}\n", results.model)?;
    let [one, two] = results.bandwidth.each_ref().map(|values| median(values));
    writeln!(
        text,
        "Memory reads at {:.1} GB/s with one thread and {:.1} with two; a token reads {:.1} MB of \
         weights.\n",
        one.unwrap_or(0.0),
        two.unwrap_or(0.0),
        results.weight_bytes as f64 / 1e6
    )?;
    speeds(text, &results.entries)?;
    starts(text, &results.entries)?;
    floors(text, results)
}

/// Tokens a second by the clock, and in parentheses by the processor's time, with one thread.
fn speeds(text: &mut String, entries: &[Entry]) -> std::fmt::Result {
    writeln!(
        text,
        "| engine | threads | prefill 128 | prefill 512 | decode 128 | runs | waited |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|")?;
    for entry in entries {
        write!(text, "| {} | {} ", name(entry), entry.threads)?;
        for work in Work::ALL {
            match (rate(entry, work), rate_of_cpu(entry, work)) {
                (Some(wall), Some(cpu)) if entry.threads == 1 => {
                    write!(text, "| {wall:.1} ({cpu:.1}) ")?;
                }
                (Some(wall), _) => write!(text, "| {wall:.1} ")?,
                (None, _) => write!(text, "| - ")?,
            }
        }
        let count = |work| of(entry, work).count();
        let counts = Work::ALL.map(count).into_iter().filter(|count| *count > 0);
        let runs = counts.min().unwrap_or(0);
        let waited = entry
            .samples
            .iter()
            .filter_map(|sample| sample.waited)
            .collect::<Vec<_>>();
        let waited = median(&waited).map_or("-".into(), |share| format!("{:.1} %", share * 100.0));
        writeln!(text, "| {runs} | {waited} |")?;
    }
    for entry in entries.iter() {
        if let Some(why) = &entry.refused {
            writeln!(text, "\n{} with {}: {why}", entry.engine, entry.threads)?;
        }
    }
    Ok(())
}

fn starts(text: &mut String, entries: &[Entry]) -> std::fmt::Result {
    writeln!(
        text,
        "\n| engine | threads | load | first use: prefill 128, decode 128 | cold page to first \
         token | peak memory |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|")?;
    for entry in entries {
        let seconds = |value: Option<f64>| value.map_or("-".into(), |s| format!("{s:.2} s"));
        let first = |work| {
            let sample = entry.first_use.iter().find(|sample| sample.work == work);
            sample.map_or("-".into(), |sample| {
                format!("{:.1}", f64::from(sample.tokens) / sample.wall_s)
            })
        };
        writeln!(
            text,
            "| {} | {} | {} | {}, {} | {} | {} |",
            name(entry),
            entry.threads,
            seconds(entry.load_s),
            first(Work::Read128),
            first(Work::Write128),
            seconds(median(&entry.first_token_s)),
            entry
                .peak_mib
                .map_or("-".into(), |mib| format!("{mib:.0} MiB"))
        )?;
    }
    Ok(())
}

fn floors(text: &mut String, results: &ModelResults) -> std::fmt::Result {
    writeln!(
        text,
        "\n| ours | against | decode 128 | wanted | | prefill 512 | wanted | |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|---|")?;
    for floor in FLOORS {
        let (ours, theirs) = (floor.ours, floor.theirs);
        write!(
            text,
            "| {}, {} | {}, {} ",
            ours.0, ours.1, theirs.0, theirs.1
        )?;
        for (work, wanted) in [(Work::Write128, floor.write), (Work::Read512, floor.read)] {
            match ratio(results, floor, work) {
                Some((ratio, by_cpu)) => {
                    let verdict = if ratio >= wanted { "met" } else { "missed" };
                    let clock = if by_cpu { " (processor)" } else { "" };
                    write!(text, "| {ratio:.2}{clock} | {wanted} | {verdict} ")?;
                }
                None => write!(text, "| - | {wanted} | not measured ")?,
            }
        }
        writeln!(text, "|")?;
    }
    memory_limit(text, results)?;
    first_token(text, results)
}

/// Decode against what the memory's speed allows.
fn memory_limit(text: &mut String, results: &ModelResults) -> std::fmt::Result {
    writeln!(text)?;
    for entry in results.entries.iter().filter(|entry| is_ours(entry)) {
        let bandwidth = results.bandwidth.get(entry.threads - 1);
        let bandwidth = bandwidth.and_then(|values| median(values));
        let (Some(rate), Some(bandwidth)) = (rate(entry, Work::Write128), bandwidth) else {
            continue;
        };
        if disturbed(entry, Work::Write128) {
            continue;
        }
        let share = rate * results.weight_bytes as f64 / (bandwidth * 1e9);
        let wanted = match (results.model.as_str(), entry.engine.as_str(), entry.threads) {
            ("q8_0", "chromium relaxed-threads", 2) if share >= SHARE_OF_MEMORY => ", met",
            ("q8_0", "chromium relaxed-threads", 2) => ", missed: 0.65 is wanted",
            _ => "",
        };
        writeln!(
            text,
            "- {} with {}: decode reads weights at {share:.2} of the memory's speed{wanted}",
            entry.engine, entry.threads
        )?;
    }
    Ok(())
}

fn first_token(text: &mut String, results: &ModelResults) -> std::fmt::Result {
    let fastest = |is_wanted: fn(&Entry) -> bool| {
        let medians = results.entries.iter().filter(|entry| is_wanted(entry));
        let medians = medians.filter_map(|entry| median(&entry.first_token_s));
        medians.min_by(f64::total_cmp)
    };
    let ours = fastest(|entry| entry.engine.starts_with("chromium"));
    let theirs = fastest(|entry| entry.engine.starts_with("wllama"));
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return Ok(());
    };
    let verdict = if ours <= theirs * FIRST_TOKEN {
        "met"
    } else {
        "missed"
    };
    writeln!(
        text,
        "- cold page to first token: {ours:.2} s, wllama {theirs:.2} s, {:.2} of it, {verdict}: at \
         most {FIRST_TOKEN:.2} is wanted",
        ours / theirs
    )
}

/// By how much one is faster, and whether that is by processor seconds.
fn ratio(results: &ModelResults, floor: &Floor, work: Work) -> Option<(f64, bool)> {
    let (name, threads) = floor.ours;
    let ours = results
        .entries
        .iter()
        .find(|entry| entry.engine == name && entry.threads == threads)?;
    let (beginning, threads) = floor.theirs;
    let is_theirs = |entry: &&Entry| match beginning {
        "wllama" => entry.engine.starts_with(beginning) && entry.threads == threads,
        _ => entry.engine == beginning && entry.threads == threads,
    };
    let theirs: Vec<&Entry> = results.entries.iter().filter(is_theirs).collect();
    let all = || theirs.iter().chain([&ours]);
    let by_cpu = all().all(|entry| entry.threads == 1) && all().any(|entry| disturbed(entry, work));
    let rate = if by_cpu { rate_of_cpu } else { rate };
    let theirs = theirs.iter().filter_map(|entry| rate(entry, work));
    Some((rate(ours, work)? / theirs.max_by(f64::total_cmp)?, by_cpu))
}

/// Its one thread waited for a core, so that processor seconds say more than the clock.
fn disturbed(entry: &Entry, work: Work) -> bool {
    let waited: Vec<f64> = of(entry, work).filter_map(|sample| sample.waited).collect();
    entry.threads == 1 && median(&waited).is_some_and(|share| share > WAITED)
}

fn name(entry: &Entry) -> String {
    match entry.version.as_str() {
        version if entry.engine.starts_with("wllama") => format!("wllama {version}"),
        _ => entry.engine.clone(),
    }
}

fn is_ours(entry: &Entry) -> bool {
    !entry.engine.contains("llama")
}

fn of(entry: &Entry, work: Work) -> impl Iterator<Item = &crate::bundle::Sample> {
    entry
        .samples
        .iter()
        .filter(move |sample| sample.work == work)
}

/// Tokens a second.
fn rate(entry: &Entry, work: Work) -> Option<f64> {
    let times: Vec<f64> = of(entry, work).map(|sample| sample.wall_s).collect();
    Some(f64::from(work.counted()) / median(&times)?)
}

/// Tokens for each second of the processor.
fn rate_of_cpu(entry: &Entry, work: Work) -> Option<f64> {
    let times: Vec<f64> = of(entry, work).map(|sample| sample.cpu_s).collect();
    Some(f64::from(work.counted()) / median(&times)?)
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some((sorted[low] + sorted[high]) / 2.0)
}
