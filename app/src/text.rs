//! Words for people: sizes, times, phases, and what went wrong.
//!
//! Sizes are decimal (1 MB is 1,000,000 bytes), as disks and downloads are sold.

mod fit;
mod reports;
mod sharing;
mod storage;

pub use fit::{drop_again, fit_parts, fit_sum, fits, lever, too_much};
pub use reports::{code, diagnostics, receipt, report};
pub use sharing::{
    BEYOND_ROUTERS, BY_CODE, WHAT_A_PEER_LEARNS, code_refused, giving, invite_refused, peer_lied,
    peers,
};
pub use storage::{
    BORROWED, CHECKED, checking, computed, condition, damage, file_name, kept, space, storage, used,
};

use protocol::{ChatAbility, Figures, Finish, ImportPhase, LaneId, TabRole};

use crate::state::{End, TurnEnd};

/// `98362432` is "98.4 MB".
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1000.0;
    let mut unit = 0;
    // 999.5 would be written "1000", so the next unit begins there.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if value < 99.95 {
        format!("{value:.1} {}", UNITS[unit])
    } else {
        format!("{value:.0} {}", UNITS[unit])
    }
}

/// `1234567` is "1,234,567".
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// How long something still takes; coarse on purpose, because an estimate is.
pub fn time_left(seconds: u64) -> String {
    match seconds {
        0..=1 => "about a second left".into(),
        2..=9 => format!("{seconds} seconds left"),
        10..=59 => format!("{} seconds left", seconds.div_ceil(5) * 5),
        60..=89 => "about a minute left".into(),
        90..=5399 => format!("about {} minutes left", (seconds + 30) / 60),
        _ => format!("about {} hours left", (seconds + 1800) / 3600),
    }
}

/// The last part of an address, or all of it if that is empty.
pub fn address_name(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let name = path.trim_end_matches('/').rsplit('/').next();
    name.filter(|name| !name.is_empty()).unwrap_or(url).into()
}

/// When something that failed is tried again.
pub fn tried_again(milliseconds: u64) -> String {
    match milliseconds.div_ceil(1000) {
        0 => "It is tried again now.".into(),
        1 => "It is tried again in a second.".into(),
        seconds @ 2..=90 => format!("It is tried again in {seconds} seconds."),
        seconds => format!("It is tried again in {} minutes.", seconds.div_ceil(60)),
    }
}

/// A token rate with three digits at most: "7.25", "34.6", "120".
pub fn rate(tokens: u32, milliseconds: f64) -> Option<String> {
    if tokens == 0 || !milliseconds.is_finite() || milliseconds <= 0.0 {
        return None;
    }
    let rate = f64::from(tokens) * 1000.0 / milliseconds;
    Some(match rate {
        r if r < 9.995 => format!("{r:.2}"),
        r if r < 99.95 => format!("{r:.1}"),
        r => format!("{r:.0}"),
    })
}

/// What an answer cost: its tokens and, if time was taken, their rate.
pub fn figures(figures: &Figures) -> (String, Option<String>) {
    let tokens = match figures.new_tokens {
        1 => "1 token".to_string(),
        n => format!("{} tokens", count(u64::from(n))),
    };
    let rate = rate(figures.new_tokens, figures.decode_ms);
    (tokens, rate.map(|rate| format!("{rate} tokens/s")))
}

/// What stands behind an answer's figures: its seed, and how much of the prompt was known already.
pub fn more(end: &TurnEnd) -> String {
    let seed = format!("Seed {}", end.seed);
    match end.end {
        End::Finished { figures, .. } => {
            let (known, all) = (figures.reused_tokens, figures.prompt_tokens);
            format!("{seed}. Of {all} tokens before the answer {known} were known already.")
        }
        _ => seed,
    }
}

/// Rounded down: 100 means that everything is there.
pub fn percent(done: u64, total: u64) -> u32 {
    share(done, total) / 100
}

/// Ten-thousandths of a whole.
pub fn share(part: u64, whole: u64) -> u32 {
    match whole {
        0 => 0,
        whole => (u128::from(part.min(whole)) * 10_000 / u128::from(whole)) as u32,
    }
}

pub fn phase(phase: ImportPhase) -> &'static str {
    match phase {
        ImportPhase::Checking => "Reading the file to learn what it is",
        ImportPhase::Converting => "Converting it to .slm",
        ImportPhase::Receiving => "Receiving and checking pieces",
    }
}

/// Nothing is said about an answer that ended by itself.
pub fn finish(finish: Finish) -> Option<&'static str> {
    match finish {
        Finish::Stop => None,
        Finish::Length => Some("Cut off at the length limit"),
        Finish::Cancelled => Some("Stopped by you"),
        Finish::NumericalCollapse => Some("Ended: no valid next word was left"),
    }
}

/// Why a model cannot chat: what is missing, and what can be done.
pub fn cannot_chat(ability: ChatAbility) -> Option<(&'static str, &'static str)> {
    match ability {
        ChatAbility::Yes => None,
        ChatAbility::NoTokenizer => Some((
            "This model cannot chat: its file holds no tokenizer, so words cannot become numbers.",
            "You can still measure it under About. To chat, import a file that carries its \
             tokenizer.",
        )),
        ChatAbility::NoTemplate => Some((
            "This model cannot chat: its file has no chat template, and guessing one gives \
             nonsense.",
            "You can still measure it under About. To chat, choose an instruction-tuned file; \
             such names often end in “Instruct” or “chat”.",
        )),
    }
}

/// What tests and styles read.
pub fn role_name(role: TabRole) -> &'static str {
    match role {
        TabRole::Owner => "owner",
        TabRole::Follower => "follower",
        TabRole::Waiting => "waiting",
        TabRole::Silent => "silent",
        TabRole::Outdated => "outdated",
    }
}

/// Which tab does the work; nothing where it is this one, as most people expect.
pub fn role(role: TabRole) -> Option<&'static str> {
    match role {
        TabRole::Owner | TabRole::Outdated => None,
        TabRole::Follower => Some("Another tab does the work"),
        TabRole::Waiting => Some("Waiting until another tab with an earlier version has answered"),
        TabRole::Silent => Some("The tab that does the work does not answer"),
    }
}

pub fn lane(lane: LaneId) -> &'static str {
    match lane {
        LaneId::ScalarWasm32 => "scalar, one number at a time; runs everywhere",
        LaneId::Simd128Wasm32 => "SIMD128, four numbers at a time",
        LaneId::RelaxedWasm32 => "relaxed SIMD, sixteen small numbers at a time",
        LaneId::Simd128ThreadsWasm32 => "SIMD128 on several threads",
        LaneId::RelaxedThreadsWasm32 => "relaxed SIMD on several threads",
        LaneId::Native => "native",
        #[allow(unreachable_patterns, reason = "the table of lanes grows")]
        _ => "another build of the engine",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_with_three_digits() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (99_949, "99.9 kB"),
            (99_950, "100 kB"),
            (999_499, "999 kB"),
            (999_500, "1.0 MB"),
            (98_362_432, "98.4 MB"),
            (253_113_024, "253 MB"),
            (4_294_967_296, "4.3 GB"),
            (u64::MAX, "18446744 TB"),
        ];
        for (count, expected) in cases {
            assert_eq!(bytes(count), expected, "{count}");
        }
    }

    #[test]
    fn counts_are_grouped_by_three() {
        for (value, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (98_362_432, "98,362,432"),
        ] {
            assert_eq!(count(value), expected);
        }
    }

    #[test]
    fn time_left_gets_coarser() {
        let cases = [
            (0, "about a second left"),
            (9, "9 seconds left"),
            (11, "15 seconds left"),
            (59, "60 seconds left"),
            (61, "about a minute left"),
            (90, "about 2 minutes left"),
            (5_400, "about 2 hours left"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(time_left(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn a_rate_needs_tokens_and_time() {
        let cases = [
            (0, 10.0, None),
            (10, 0.0, None),
            (10, f64::NAN, None),
            (10, 4000.0, Some("2.50")),
            (64, 2000.0, Some("32.0")),
            (300, 1000.0, Some("300")),
        ];
        for (tokens, milliseconds, expected) in cases {
            assert_eq!(
                rate(tokens, milliseconds).as_deref(),
                expected,
                "{tokens} {milliseconds}"
            );
        }
    }

    #[test]
    fn hundred_percent_means_all_of_it() {
        for (done, total, expected) in [
            (0, 0, 0),
            (999, 1000, 99),
            (1000, 1000, 100),
            (9, 3, 100),
            (u64::MAX, u64::MAX, 100),
        ] {
            assert_eq!(percent(done, total), expected, "{done}/{total}");
        }
    }
}
