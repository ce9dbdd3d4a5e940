//! Every way the header region can be wrong, each by its own bytes. `refused_ranges` has
//! the places of the tensors, `refused_manifests` what the manifest inside can get wrong.

#![allow(clippy::unwrap_used)]

mod fixture;

use fixture::{Draft, model};
use format::FormatError::*;
use format::*;

/// Parses a region that holds `json`, of a file of `file_len` bytes.
fn parse(json: &str, file_len: u64) -> Result<Header, FormatError> {
    Header::parse(&fixture::region(json), file_len)
}

/// The valid header with `from` (which occurs once) replaced by `to`.
#[track_caller]
fn refuse(from: &str, to: &str, expected: FormatError) {
    let draft = Draft::new(model());
    let json = fixture::replace_once(&draft.json, from, to);
    assert_eq!(draft.parse(&json), Err(expected), "{from} -> {to}");
}

fn header_text() -> JsonText {
    JsonText::Header
}

#[test]
fn the_length_field() {
    let max = HEADER_BYTES_MAX;
    for found in [max + 1, u64::MAX] {
        let expected = Err(HeaderTooLarge { found, max });
        assert_eq!(header_len(found.to_le_bytes(), u64::MAX), expected);
    }
    assert_eq!(header_len((max - 8).to_le_bytes(), max), Ok(max));
    let expected = Err(HeaderBeyondEnd {
        header_end: 128,
        file_len: 127,
    });
    assert_eq!(header_len(120u64.to_le_bytes(), 127), expected);
    assert_eq!(header_len(120u64.to_le_bytes(), 128), Ok(128));
    for n in [0, 57, 119, 121] {
        let expected = Err(HeaderMisaligned { header_len: n + 8 });
        assert_eq!(header_len(n.to_le_bytes(), 1000), expected);
    }
}

#[test]
fn a_region_of_another_length() {
    let header = Header::layout(model()).unwrap();
    let mut bytes = header.to_bytes();
    let expected = header.data_start;
    for cut in [0, 7] {
        let error = HeaderLength {
            expected: 8,
            found: cut,
        };
        assert_eq!(
            Header::parse(&bytes[..cut as usize], header.file_len),
            Err(error)
        );
    }
    for cut in [8, 64, expected - 1] {
        let error = HeaderLength {
            expected,
            found: cut,
        };
        assert_eq!(
            Header::parse(&bytes[..cut as usize], header.file_len),
            Err(error)
        );
    }
    bytes.push(b' ');
    let error = HeaderLength {
        expected,
        found: expected + 1,
    };
    assert_eq!(Header::parse(&bytes, header.file_len), Err(error));
}

#[test]
fn not_utf8() {
    let draft = Draft::new(model());
    let mut region = fixture::region(&draft.json);
    // The first byte of a two-byte character, with its second byte missing.
    let at = region
        .windows(2)
        .position(|two| two == "é".as_bytes())
        .unwrap();
    region[at + 1] = b'x';
    let error = HeaderNotUtf8 { at: at as u64 };
    assert_eq!(Header::parse(&region, draft.file_len), Err(error));
}

#[test]
fn not_one_object_padded_with_spaces() {
    let draft = Draft::new(model());
    for json in [
        String::new(),
        "null".into(),
        "[]".into(),
        format!(" {}", draft.json),
        format!("{}\n", draft.json),
        format!("{}\0", draft.json),
    ] {
        assert_eq!(draft.parse(&json), Err(HeaderPadding), "{json:?}");
    }
}

#[test]
fn not_json() {
    let place = |line, column| NotJson {
        text: header_text(),
        line,
        column,
    };
    assert_eq!(parse("{\"a\":}", 1 << 20), Err(place(1, 6)));
    assert_eq!(parse("{\n\"a\" 1}", 1 << 20), Err(place(2, 5)));
    assert_eq!(parse("{\"a\":1}{}", 1 << 20), Err(place(1, 8)));
    assert_eq!(parse("{\"a\":1e999}", 1 << 20), Err(place(1, 10)));
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    assert_eq!(parse(&deep, 1 << 20), Err(place(1, 132)));
}

#[test]
fn too_many_values() {
    let json = format!("{{\"a\":[{}0]}}", "0,".repeat(2_000_000));
    let error = JsonTooManyValues {
        text: header_text(),
        max: 2_000_000,
    };
    assert_eq!(parse(&json, 1 << 24), Err(error));
}

#[test]
fn duplicate_keys_at_every_level() {
    let twice = |key: &str| DuplicateKey {
        text: header_text(),
        key: key.into(),
    };
    let metadata = "{\"__metadata__\":{";
    refuse(
        metadata,
        "{\"__metadata__\":{},\"__metadata__\":{",
        twice("__metadata__"),
    );
    refuse(
        metadata,
        "{\"__metadata__\":{\"slm.manifest\":\"\",",
        twice("slm.manifest"),
    );
    refuse("\"norm\":{", "\"norm\":{},\"norm\":{", twice("norm"));
    // The same key, spelled with an escape.
    refuse("\"norm\":{", "\"n\\u006frm\":{},\"norm\":{", twice("norm"));
    refuse("\"norm\":{", "\"norm\":{\"dtype\":\"F32\",", twice("dtype"));
}

#[test]
fn no_manifest() {
    assert_eq!(parse("{}", 64), Err(NoManifest));
    assert_eq!(parse("{\"__metadata__\":{}}", 64), Err(NoManifest));
    let field = |path: &str| UnknownField {
        text: header_text(),
        path: path.into(),
    };
    let wrong = |path: &str| WrongValue {
        text: header_text(),
        path: path.into(),
    };
    let error = field("__metadata__.format");
    assert_eq!(
        parse("{\"__metadata__\":{\"format\":\"pt\"}}", 64),
        Err(error)
    );
    assert_eq!(
        parse("{\"__metadata__\":[]}", 64),
        Err(wrong("__metadata__"))
    );
    let error = wrong("__metadata__.slm.manifest");
    assert_eq!(
        parse("{\"__metadata__\":{\"slm.manifest\":{}}}", 64),
        Err(error)
    );
}

#[test]
fn tensor_entries() {
    let path = |path: &str| (header_text(), path.to_string());
    let wrong = |place: &str| {
        let (text, path) = path(place);
        WrongValue { text, path }
    };
    let (text, place) = path("norm.dtype");
    let unknown = UnknownValue {
        text,
        path: place,
        found: "I64".into(),
    };
    refuse(
        "\"norm\":{\"dtype\":\"F32\"",
        "\"norm\":{\"dtype\":\"I64\"",
        unknown,
    );
    let (text, place) = path("norm.dtype");
    let missing = MissingField { text, path: place };
    refuse("\"norm\":{\"dtype\":\"F32\",", "\"norm\":{", missing);
    let (text, place) = path("norm.strides");
    let field = UnknownField { text, path: place };
    refuse("\"norm\":{", "\"norm\":{\"strides\":[],", field);
    refuse(
        "\"norm\":{\"dtype\":\"F32\"",
        "\"norm\":{\"dtype\":3",
        wrong("norm.dtype"),
    );

    let norm = Draft::new(model()).entry("norm");
    let with = |from: &str, to: &str| fixture::replace_once(&norm, from, to);
    refuse(&norm, &with("[1,32]", "[1,-32]"), wrong("norm.shape.1"));
    refuse(&norm, &with("[1,32]", "[1,32.0]"), wrong("norm.shape.1"));
    refuse(&norm, &with("[1,32]", "{}"), wrong("norm.shape"));
    let offsets = norm.rfind('[').unwrap();
    for bad in ["[0]}", "[0,1,2]}", "[0,18446744073709551616]}", "7}"] {
        let text = format!("{}{bad}", &norm[..offsets]);
        let draft = Draft::new(model());
        let json = fixture::replace_once(&draft.json, &norm, &text);
        let Err(WrongValue { path, .. }) = draft.parse(&json) else {
            panic!("{bad} passed");
        };
        assert!(path.starts_with("norm.data_offsets"), "{bad}: {path}");
    }
    refuse(&norm, "\"norm\":[\"F32\",[1,32],[0,128]]", wrong("norm"));
}

#[test]
fn tensor_names() {
    let long = "x".repeat(257);
    for name in ["", "a\\u0000", "a\\nb", "\\u007f", long.as_str()] {
        let draft = Draft::new(model());
        let json = fixture::replace_once(&draft.json, "\"norm\":{", &format!("\"{name}\":{{"));
        let Err(BadName { found }) = draft.parse(&json) else {
            panic!("{name:?} passed");
        };
        assert!(found.len() <= 256);
    }
}

#[test]
fn too_many_tensors() {
    let mut json = String::from("{\"__metadata__\":{\"slm.manifest\":\"\"}");
    for number in 0..=2 * TENSORS_MAX {
        json.push_str(&format!(
            ",\"{number}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"
        ));
    }
    json.push('}');
    assert_eq!(
        parse(&json, 1 << 24),
        Err(TooManyTensors { max: TENSORS_MAX })
    );
}
