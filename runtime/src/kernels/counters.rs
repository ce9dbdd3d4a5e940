//! Which matrix products really ran.

/// Matrix products since the program started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub scalar: u64,
    pub simd: u64,
}

pub fn calls() -> Calls {
    todo!()
}
