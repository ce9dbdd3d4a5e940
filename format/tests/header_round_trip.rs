//! A header that is written is the header that is read.

mod fixture;

use fixture::{architecture, file, manifest, model};
use format::*;

#[test]
fn layout_then_parse_gives_the_same_header() {
    for kind in [Kind::Model, Kind::Bare] {
        let header = Header::layout(manifest(architecture(), kind, Layout::Q8_0R4)).unwrap();
        let bytes = header.to_bytes();
        assert_eq!(bytes.len() as u64, header.data_start);
        let first = *bytes.first_chunk().unwrap();
        assert_eq!(header_len(first, header.file_len), Ok(header.data_start));
        assert_eq!(Header::parse(&bytes, header.file_len), Ok(header));
    }
    let header = Header::layout(model()).unwrap();
    assert_eq!(file(&header).len() as u64, header.file_len);
}
