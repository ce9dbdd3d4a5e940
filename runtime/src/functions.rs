//! Deterministic elementary functions.
