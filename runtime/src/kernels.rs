//! The inner loops.
