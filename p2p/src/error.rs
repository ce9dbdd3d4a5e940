//! Every way a link or a peer's description can be wrong.

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
    /// Neither a STUN server nor a TURN server with a name and a password.
    NotAnIceServer,
    /// What two peers must know of each other did not arrive whole.
    Signal(SignalFault),
}

/// Why a description of a peer, or the text it came in, is not taken. It never quotes the text:
/// that holds addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignalFault {
    TooLong,
    /// A line or part is missing, or says what no data channel of ours says.
    Field {
        name: &'static str,
    },
    /// No code, or one of another version.
    NotACode,
    /// A part of the code is missing or changed.
    Damaged,
    /// The code is about another model.
    OtherModel,
    /// Not sealed with this model's root, or for something else.
    NotSealed,
}

impl fmt::Display for P2pError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use P2pError::*;
        match self {
            TooLong { found, max } => {
                write!(f, "the link has {found} bytes; at most {max} are allowed")
            }
            NotAnInvite => f.write_str("not a link of this version"),
            BadRoot => f.write_str("the model's root is not 64 hexadecimal digits"),
            BadLength => f.write_str("the model's length is not a number this program can hold"),
            BadName => f.write_str("the name is empty, too long or has control characters"),
            BadAddress { field, index } => write!(f, "address {index} of {field} is not usable"),
            TooManyAddresses { field, max } => write!(f, "more than {max} addresses of {field}"),
            MissingField { field } => write!(f, "the link has no {field}"),
            DuplicateField { field } => write!(f, "the link has {field} twice"),
            UnknownField { at } => write!(f, "unknown field at byte {at} of the link"),
            BadEscape { at } => write!(f, "the link is not well encoded at byte {at}"),
            NotUtf8 { field } => write!(f, "{field} of the link is not UTF-8"),
            NotAnIceServer => {
                f.write_str("an ICE server is stun:HOST:PORT or turn:HOST:PORT,USER,PASSWORD")
            }
            Signal(fault) => fault.fmt(f),
        }
    }
}

impl fmt::Display for SignalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use SignalFault::*;
        match self {
            TooLong => f.write_str("the text is longer than any that is needed"),
            Field { name } => write!(f, "the description's {name} is missing or not usable"),
            NotACode => f.write_str("not a code of this version"),
            Damaged => f.write_str("a part of the code is missing or changed"),
            OtherModel => f.write_str("the code is about another model"),
            NotSealed => f.write_str("not from somebody who knows this model"),
        }
    }
}

impl From<SignalFault> for P2pError {
    fn from(fault: SignalFault) -> P2pError {
        P2pError::Signal(fault)
    }
}

impl std::error::Error for P2pError {}
