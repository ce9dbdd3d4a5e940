//! The browser's brand and major version, which is all that a receipt tells of it.

/// Brands by the word before their version, the more special first: most browsers name others too.
const BRANDS: [(&str, &str); 5] = [
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Version/", "Safari"),
];

/// As in `Firefox 153`, or `unknown`.
pub fn browser_name(user_agent: &str) -> String {
    for (word, brand) in BRANDS {
        let after = user_agent.split_once(word).map(|(_, after)| after);
        let digits = after.map_or("", |after| {
            let end = after.find(|letter: char| !letter.is_ascii_digit());
            &after[..end.unwrap_or(after.len())]
        });
        if !digits.is_empty() {
            return format!("{brand} {digits}");
        }
    }
    "unknown".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(user_agent: &str, want: &str) {
        assert_eq!(browser_name(user_agent), want, "{user_agent}");
    }

    /// As the browsers send them, their makers' documentation says.
    #[test]
    fn brands_and_versions() {
        let webkit = "AppleWebKit/537.36 (KHTML, like Gecko)";
        let linux = "Mozilla/5.0 (X11; Linux x86_64)";
        check(
            &format!("{linux} {webkit} Chrome/156.0.0.0 Safari/537.36"),
            "Chrome 156",
        );
        check(
            &format!("{linux} {webkit} HeadlessChrome/156.0.0.0 Safari/537.36"),
            "Chrome 156",
        );
        check(
            &format!("{linux} {webkit} Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0"),
            "Edge 156",
        );
        check(
            "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0",
            "Firefox 153",
        );
        check(
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 \
             (KHTML, like Gecko) Version/26.1 Safari/605.1.15",
            "Safari 26",
        );
        check("curl/8", "unknown");
        check("Firefox/", "unknown");
        check("", "unknown");
    }
}
