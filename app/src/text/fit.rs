//! Words for memory: what each part is for, what is too much, and what helps.

use protocol::abi::{
    REGION_KV, REGION_LOGITS, REGION_METADATA, REGION_SAMPLER, REGION_SCRATCH, REGION_WEIGHTS,
};
use protocol::{ErrorReport, Fit, FitReport, KvFormat, Lever, Regions, Residency, Stage, TrResult};

use super::{bytes, count};

/// Parts of the memory plan in the order they are drawn.
pub fn fit_parts(regions: &Regions) -> [(&'static str, u64); 10] {
    [
        ("Weights", regions.weights),
        ("Attention memory", regions.kv),
        ("Working space", regions.scratch),
        ("Logits", regions.logits),
        ("Choice of words", regions.sampler),
        ("Tables", regions.metadata),
        ("Tokenizer", regions.tokenizer),
        ("Meeting of threads", regions.control),
        ("Stacks of threads", regions.stacks),
        ("Passing data", regions.transfer),
    ]
}

/// What a loaded model takes, in one sentence.
pub fn fit_sum(fit: &FitReport) -> String {
    let taken = fit.taken.map_or(fit.total, |taken| taken.total());
    format!(
        "{} of the {} that this build can hold, with room for {} tokens. {}",
        bytes(taken),
        bytes(fit.limit),
        count(u64::from(fit.context)),
        residency(fit),
    )
}

/// How the weights are held, in one sentence.
fn residency(fit: &FitReport) -> String {
    match fit.residency {
        _ if fit.streamed == 0 => "All weights are in memory.".into(),
        Residency::Paged => format!(
            "Weights are read from this device as they are needed, {} for each token.",
            bytes(fit.streamed)
        ),
        _ => format!(
            "{} of {} layers are in memory; the others are read from this device, {} for each \
             token.",
            fit.kept_layers,
            fit.layers,
            bytes(fit.streamed)
        ),
    }
}

/// What is too much, in one sentence; `None` if the model fits.
pub fn too_much(fit: &Fit) -> Option<String> {
    let over = fit.over?;
    let part = match over.region {
        REGION_WEIGHTS => "Its weights need",
        REGION_KV => "Remembering a conversation needs",
        REGION_SCRATCH => "Its working space needs",
        REGION_METADATA => "Its tables need",
        REGION_LOGITS | REGION_SAMPLER => "Choosing among its words needs",
        _ => "The engine itself needs",
    };
    Some(format!(
        "{part} {}, and {} are left of the {} that this build can hold here.",
        bytes(over.needed),
        bytes(over.left),
        bytes(fit.report.limit)
    ))
}

/// That a model fits, before it is fetched.
pub fn fits(fit: &Fit) -> String {
    let report = &fit.report;
    format!(
        "It will take {} of the {} that this build can hold, with room for {} tokens.",
        bytes(report.total),
        bytes(report.limit),
        count(u64::from(report.context))
    )
}

/// A dropped file's handle went with its import.
pub fn drop_again() -> ErrorReport {
    ErrorReport {
        code: TrResult::Source,
        stage: Stage::Import,
        what: "The file is needed once more.".into(),
        remedy: "Drop or choose it again; it will be taken in the way you chose.".into(),
    }
}

/// What a lever does and what it costs.
pub fn lever(lever: &Lever) -> (&'static str, String) {
    let Lever { wish, report } = lever;
    let does = match (wish.residency, wish.kv_format) {
        (Residency::Full, KvFormat::Int8) => "Remember with less precision",
        (Residency::Full, _) => "Remember less",
        (Residency::Hybrid, KvFormat::Int8) => {
            "Keep a part of it in memory, and remember with less precision"
        }
        (Residency::Hybrid, _) => "Keep a part of it in memory",
        (Residency::Paged, KvFormat::Int8) => "Read as it goes, and remember with less precision",
        (Residency::Paged, _) => "Read it from this device as it goes",
    };
    let mut costs = format!(
        "Takes {}, with room for {} tokens.",
        bytes(report.total),
        count(u64::from(report.context))
    );
    if report.streamed > 0 {
        let slow = format!(" Slower: reads {} for each token.", bytes(report.streamed));
        costs.push_str(&slow);
    }
    (does, costs)
}

#[cfg(test)]
mod tests {
    use protocol::Wish;
    use protocol::abi::Plan;

    use super::*;

    /// Whatever a way costs stands beside its button: precision, room, or time.
    #[test]
    fn every_way_says_what_it_costs() {
        let offered = [
            (KvFormat::F16, Residency::Full),
            (KvFormat::Int8, Residency::Full),
            (KvFormat::F16, Residency::Hybrid),
            (KvFormat::Int8, Residency::Hybrid),
            (KvFormat::F16, Residency::Paged),
            (KvFormat::Int8, Residency::Paged),
        ];
        for (kv_format, residency) in offered {
            let plan = Plan {
                total: 21_000_000,
                context: 512,
                streamed: match residency {
                    Residency::Full => 0,
                    Residency::Hybrid | Residency::Paged => 7_000_000,
                },
                ..Plan::default()
            };
            let wish = Wish {
                context: 512,
                kv_format,
                residency,
            };
            let report = FitReport::of(&plan, None);
            let (does, costs) = lever(&Lever { wish, report });
            let is_coarse = does.contains("less precision");
            assert_eq!(is_coarse, kv_format == KvFormat::Int8, "{does}");
            let is_slow = costs.contains("Slower: reads 7.0 MB for each token");
            assert_eq!(is_slow, residency != Residency::Full, "{costs}");
            assert!(costs.contains("Takes 21.0 MB"), "{costs}");
            assert!(costs.contains("512 tokens"), "{costs}");
        }
    }
}
