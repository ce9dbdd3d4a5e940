//! Measures, settings, titles and notices.

use super::*;

/// The ids are what they are documented to be, so that devices can be compared for good.
#[test]
fn a_measure_is_the_same_everywhere() {
    assert_eq!(MEASURE_PROMPT[..5], [11, 48, 85, 122, 159]);
    let mut sorted = MEASURE_PROMPT;
    sorted.sort_unstable();
    assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]) && sorted[127] < 251);

    let mut app = chatting();
    assert_eq!(app.act(NOW, Action::Measure(BITS)).len(), 1);
    assert_eq!(app.phase(), Phase::Generating);
    assert_eq!(app.act(NOW, Action::Measure(SPEED)), [], "one at a time");
    assert_eq!(send(&mut app, "Hi"), [], "the engine is busy");
    let measured = Event::Measured {
        request: RequestId(1),
        figures: Figures::default(),
        logits_sha256: Digest([9; 32]),
        ids: vec![1, 2],
    };
    app.apply(NOW, measured);
    assert_eq!(app.measures.bits().unwrap().logits_sha256, Digest([9; 32]));
    assert!(app.measures.speed().is_none());
    assert_eq!(app.phase(), Phase::Ready);
}

#[test]
fn typed_settings_are_checked() {
    type Set = fn(&mut Settings, &str) -> Result<(), FieldError>;
    let cases: [(Set, &str, Result<(), FieldError>); 14] = [
        (Settings::set_temperature, "0", Ok(())),
        (Settings::set_temperature, " 0,7 ", Ok(())),
        (Settings::set_temperature, "2.1", Err(FieldError::Outside)),
        (
            Settings::set_temperature,
            "NaN",
            Err(FieldError::NotANumber),
        ),
        (Settings::set_temperature, "", Err(FieldError::NotANumber)),
        (Settings::set_top_p, "0", Err(FieldError::Outside)),
        (Settings::set_top_p, "1", Ok(())),
        (Settings::set_max_new, "0", Err(FieldError::Outside)),
        (Settings::set_max_new, "8192", Ok(())),
        (Settings::set_max_new, "1.5", Err(FieldError::NotWhole)),
        (Settings::set_seed, "", Ok(())),
        (Settings::set_seed, "18446744073709551615", Ok(())),
        (
            Settings::set_seed,
            "18446744073709551616",
            Err(FieldError::NotWhole),
        ),
        (Settings::set_seed, "-1", Err(FieldError::NotWhole)),
    ];
    for (set, typed, expected) in cases {
        let before = Settings::default();
        let mut settings = before.clone();
        assert_eq!(set(&mut settings, typed), expected, "{typed:?}");
        assert!(
            expected.is_ok() || settings == before,
            "a refused value changes nothing"
        );
        assert!(settings.valid());
    }
}

#[test]
fn titles_are_one_short_line() {
    let long = "word ".repeat(40);
    let cases = [
        ("Hi", "Hi".to_string()),
        ("\n  \n second line\nthird", "second line".into()),
        ("", "Untitled".into()),
        (long.as_str(), format!("{}…", ["word"; 11].join(" "))),
    ];
    for (text, expected) in cases {
        assert_eq!(title_of(text), expected);
    }
    let unbroken = "ü".repeat(200);
    assert_eq!(title_of(&unbroken).chars().count(), TITLE_CHARS_MAX);
}

#[test]
fn at_most_three_notices() {
    let mut notices = Notices::default();
    let codes = [
        TrResult::Storage,
        TrResult::Source,
        TrResult::Storage,
        TrResult::Bounds,
    ];
    for code in codes.into_iter().chain([TrResult::Alignment]) {
        notices.add(trouble(code));
    }
    let shown: Vec<_> = notices
        .shown()
        .iter()
        .map(|notice| notice.report.code)
        .collect();
    assert_eq!(
        shown,
        [TrResult::Storage, TrResult::Bounds, TrResult::Alignment]
    );
    notices.dismiss(notices.shown()[1].id);
    assert_eq!(notices.shown().len(), 2);
}
