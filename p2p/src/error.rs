//! Every way an invite can be wrong.

use std::fmt;

/// A refusal, with its place. `at` counts bytes from the start of the text or of the value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum P2pError {
    TooLong {
        found: usize,
        max: usize,
    },
    /// The text does not begin with `slm1=`: no invite, or one of another version.
    NotAnInvite,
    /// The value of `slm1` is not 64 hexadecimal digits.
    BadRoot,
    /// Not a whole number from 1 to [`LENGTH_MAX`](crate::LENGTH_MAX) without leading zeros.
    BadLength,
    /// Empty, too long, or with control characters.
    BadName,
    /// An address that is not of a wanted scheme, has no host, or is too long or not plain ASCII.
    BadAddress {
        field: &'static str,
        index: usize,
    },
    TooManyAddresses {
        field: &'static str,
        max: usize,
    },
    MissingField {
        field: &'static str,
    },
    DuplicateField {
        field: &'static str,
    },
    /// A part between `&` signs that has no `=`, or a field this version does not know.
    UnknownField {
        at: usize,
    },
    /// `%` without two hexadecimal digits, a control character or a space.
    BadEscape {
        at: usize,
    },
    NotUtf8 {
        field: &'static str,
    },
}

impl fmt::Display for P2pError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use P2pError::*;
        match self {
            TooLong { found, max } => {
                write!(f, "the invite has {found} bytes; at most {max} are allowed")
            }
            NotAnInvite => f.write_str("not an invite of this version"),
            BadRoot => f.write_str("the model's root is not 64 hexadecimal digits"),
            BadLength => f.write_str("the model's length is not a number this program can hold"),
            BadName => f.write_str("the name is empty, too long or has control characters"),
            BadAddress { field, index } => write!(f, "address {index} of {field} is not usable"),
            TooManyAddresses { field, max } => write!(f, "more than {max} addresses of {field}"),
            MissingField { field } => write!(f, "the invite has no {field}"),
            DuplicateField { field } => write!(f, "the invite has {field} twice"),
            UnknownField { at } => write!(f, "unknown field at byte {at} of the invite"),
            BadEscape { at } => write!(f, "the invite is not well encoded at byte {at}"),
            NotUtf8 { field } => write!(f, "{field} of the invite is not UTF-8"),
        }
    }
}

impl std::error::Error for P2pError {}
