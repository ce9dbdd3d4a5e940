//! Deterministic elementary functions.

pub fn exp_v1(x: f32) -> f32 {
    todo!("{x}")
}
pub fn sigmoid_v1(x: f32) -> f32 {
    todo!("{x}")
}
pub fn tanh_v1(x: f32) -> f32 {
    todo!("{x}")
}
pub fn gelu_tanh_v1(x: f32) -> f32 {
    todo!("{x}")
}
pub fn silu_v1(x: f32) -> f32 {
    todo!("{x}")
}
pub fn softplus_v1(x: f32) -> f32 {
    todo!("{x}")
}
/// `1.0 / x.sqrt()`, both steps correctly rounded.
pub fn rsqrt(x: f32) -> f32 {
    todo!("{x}")
}
