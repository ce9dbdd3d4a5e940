//! Workers that share one operation.
