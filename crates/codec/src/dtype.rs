//! The element types, in one table.

/// What kind of value an element type holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Floating-point numbers of any width.
    Float,
    /// Integers with a sign, in two's complement.
    Signed,
    /// Integers without a sign, and sets of flags.
    Unsigned,
    /// True or false.
    Bool,
    /// Values of {-1, 0, +1} (T2) or {-1, +1} (T1).
    Ternary,
    /// A real and an imaginary part.
    Complex,
}

macro_rules! dtypes {
    ($($variant:ident $name:literal $bits:literal $class:ident $doc:literal;)*) => {
        /// An element type. Packed types (narrower than a byte) are stored LSB first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DType { $(#[doc = $doc] $variant,)* }

        impl DType {
            /// Every element type.
            pub const ALL: &'static [DType] = &[$(DType::$variant,)*];

            /// The short name used in reports and options, such as `f32`.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// Bits an element takes on disk.
            pub const fn bits(self) -> u64 {
                match self { $(DType::$variant => $bits,)* }
            }

            /// The kind of values that the type holds.
            pub const fn class(self) -> Class {
                match self { $(DType::$variant => Class::$class,)* }
            }
        }
    };
}

dtypes! {
    F64 "f64" 64 Float "IEEE 754 double precision";
    F32 "f32" 32 Float "IEEE 754 single precision";
    F16 "f16" 16 Float "IEEE 754 half precision";
    BF16 "bf16" 16 Float "the upper half of an f32";
    F8E5M2 "f8" 8 Float "E5M2 with infinities, the upper half of an f16";
    F8E4M3 "f8e4m3" 8 Float "E4M3 without infinities";
    F8E5M2Fnuz "f8e5m2fnuz" 8 Float "E5M2, bias 16, one NaN, no infinities";
    F8E4M3Fnuz "f8e4m3fnuz" 8 Float "E4M3, bias 8, one NaN, no infinities";
    F8E8M0 "f8e8m0" 8 Float "a power of two, the scale of the MX types";
    F6E2M3 "f6e2m3" 6 Float "MX six bit";
    F6E3M2 "f6e3m2" 6 Float "MX six bit";
    F4E2M1 "f4" 4 Float "MX four bit";
    C64 "c64" 64 Complex "two f32: real and imaginary part";
    I64 "i64" 64 Signed "two's complement";
    I32 "i32" 32 Signed "two's complement";
    I16 "i16" 16 Signed "two's complement";
    I8 "i8" 8 Signed "two's complement";
    I4 "i4" 4 Signed "packed two's complement, -8..7";
    I2 "i2" 2 Signed "packed two's complement, -2..1";
    I1 "i1" 1 Signed "packed two's complement, -1..0";
    U64 "u64" 64 Unsigned "unsigned";
    U32 "u32" 32 Unsigned "unsigned";
    U16 "u16" 16 Unsigned "unsigned";
    U8 "u8" 8 Unsigned "unsigned";
    U4 "u4" 4 Unsigned "packed unsigned, 0..15";
    U2 "u2" 2 Unsigned "packed unsigned, 0..3";
    U1 "u1" 1 Unsigned "packed unsigned, 0..1";
    T2 "t2" 2 Ternary "packed two-bit two's complement of {-1, 0, +1}";
    T1 "t1" 1 Ternary "packed bit of {-1, +1}, 0 means -1";
    Bool "bool" 8 Bool "one byte, 0 or 1";
    Bitset "bitset" 8 Unsigned "one byte of eight flags";
}

impl DType {
    /// The type with this short name.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.iter().copied().find(|d| d.name() == name)
    }

    /// Bytes that `count` elements take, the last byte filled up for packed types;
    /// `None` when that is more than a `u64` can say.
    pub fn byte_len(self, count: u64) -> Option<u64> {
        if self.bits().is_multiple_of(8) {
            count.checked_mul(self.bits() / 8)
        } else {
            Some(count.checked_mul(self.bits())?.div_ceil(8))
        }
    }

    /// Whether values are floating-point numbers; complex ones are not.
    pub const fn is_float(self) -> bool {
        matches!(self.class(), Class::Float)
    }

    /// Whether values are integers of any kind, which a quantization scale can be applied to.
    pub const fn is_integer(self) -> bool {
        matches!(self.class(), Class::Signed | Class::Unsigned | Class::Ternary)
    }

    /// Whether elements are narrower than a byte and share bytes with their neighbours.
    pub const fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// The types that hold every value of this one exactly, cheapest first.
    ///
    /// Floats never become integers; integers become floats only when nothing else is left.
    pub fn wider(self) -> &'static [DType] {
        use DType::*;
        match self {
            F64 | C64 => &[],
            F32 => &[F64],
            F16 | BF16 => &[F32, F64],
            F8E8M0 => &[BF16, F32, F64],
            F8E5M2 | F8E4M3 | F8E5M2Fnuz | F8E4M3Fnuz | F6E2M3 | F6E3M2 | F4E2M1 => {
                &[F16, F32, F64]
            }
            I64 => &[],
            I32 => &[I64, F64],
            I16 => &[I32, I64, F32, F64],
            I8 => &[I16, I32, I64, F32, F64],
            I4 | I2 | I1 | T2 | T1 => &[I8, I16, I32, I64, F32, F64],
            U64 => &[],
            U32 => &[U64, I64, F64],
            U16 => &[U32, I32, U64, I64, F32, F64],
            U8 | Bitset => &[U8, U16, I16, U32, I32, U64, I64, F32, F64],
            U4 | U2 | U1 | Bool => &[U8, I8, U16, I16, U32, I32, U64, I64, F32, F64],
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{read, write};

    #[test]
    fn sizes_are_checked() {
        assert_eq!(DType::I4.byte_len(3), Some(2));
        assert_eq!(DType::F6E2M3.byte_len(4), Some(3));
        assert_eq!(DType::F32.byte_len(u64::MAX), None);
        assert_eq!(DType::U1.byte_len(u64::MAX), Some(1 << 61));
    }

    #[test]
    fn names_are_unique() {
        for &d in DType::ALL {
            assert_eq!(DType::from_name(d.name()), Some(d));
        }
    }

    /// The promise of `wider`: every code of a narrow type survives the way there and back.
    #[test]
    fn wider_types_hold_every_code() {
        for &narrow in DType::ALL.iter().filter(|d| d.bits() <= 16) {
            for &wide in narrow.wider() {
                for code in 0..(1u32 << narrow.bits()) {
                    let bytes = code.to_le_bytes();
                    let value = read(narrow, &bytes, 0);
                    let mut stored = [0; 8];
                    write(wide, &mut stored, 0, value);
                    let back = read(wide, &stored, 0);
                    assert!(
                        value.same(back),
                        "{narrow} code {code:#x} to {wide}: {value:?} {back:?}"
                    );
                }
            }
        }
    }
}
