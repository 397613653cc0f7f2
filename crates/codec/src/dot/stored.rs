//! Floats as they are stored, converted in registers.

use crate::simd::Eight;

/// A type of floats whose values are all f32 too.
pub trait StoredFloat {
    /// A value as it lies in memory.
    type Stored: Copy;

    /// Eight of them.
    fn eight<V: Eight>(token: V::Token, from: &[Self::Stored; 8]) -> V;
    /// Fewer than eight, and zeros behind them.
    fn padded<V: Eight>(token: V::Token, from: &[Self::Stored]) -> V;
}

/// f32 of this machine.
#[derive(Clone, Copy, Debug)]
pub enum F32 {}

/// f16, little-endian.
#[derive(Clone, Copy, Debug)]
pub enum F16 {}

/// bf16, little-endian.
#[derive(Clone, Copy, Debug)]
pub enum Bf16 {}

impl StoredFloat for F32 {
    type Stored = f32;

    #[inline(always)]
    fn eight<V: Eight>(token: V::Token, from: &[f32; 8]) -> V {
        V::load(token, from)
    }

    #[inline(always)]
    fn padded<V: Eight>(token: V::Token, from: &[f32]) -> V {
        V::load_padded(token, from)
    }
}

impl StoredFloat for F16 {
    type Stored = [u8; 2];

    #[inline(always)]
    fn eight<V: Eight>(token: V::Token, from: &[[u8; 2]; 8]) -> V {
        V::from_f16(token, bytes(from))
    }

    #[inline(always)]
    fn padded<V: Eight>(token: V::Token, from: &[[u8; 2]]) -> V {
        V::from_f16(token, bytes(&zero_padded(from)))
    }
}

impl StoredFloat for Bf16 {
    type Stored = [u8; 2];

    #[inline(always)]
    fn eight<V: Eight>(token: V::Token, from: &[[u8; 2]; 8]) -> V {
        V::from_bf16(token, bytes(from))
    }

    #[inline(always)]
    fn padded<V: Eight>(token: V::Token, from: &[[u8; 2]]) -> V {
        V::from_bf16(token, bytes(&zero_padded(from)))
    }
}

#[inline(always)]
fn bytes(halves: &[[u8; 2]; 8]) -> [u8; 16] {
    *halves.as_flattened().first_chunk().expect("sixteen bytes")
}

/// Zeros are zeros in both.
#[inline(always)]
fn zero_padded(halves: &[[u8; 2]]) -> [[u8; 2]; 8] {
    std::array::from_fn(|i| halves.get(i).copied().unwrap_or([0; 2]))
}
