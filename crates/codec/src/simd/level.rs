//! What the processor has, as a value, and running kernels with it.

use super::pair::Pair;
use super::plain::{Plain, PlainToken};
use super::{Bf16Products, ByteProducts, Eight, Numbers, Vector};
use std::fmt;
use std::sync::LazyLock;

/// A set of instructions that this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
enum Kind {
    Plain,
    PlainFused,
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128,
    #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
    Neon,
    Avx2,
    Avx512,
    Avx512Vnni,
    Avx512Bf16,
    Amx,
}

impl Level {
    /// What every processor can do. It is the definition of all kernels.
    pub const PLAIN: Level = Level(Kind::Plain);
    /// The same with multiply-adds that round once: the definition for processors that do so.
    pub const PLAIN_FUSED: Level = Level(Kind::PlainFused);

    /// The best level of this processor, which is asked once. Where it has tiles (AMX), Linux is asked to let
    /// this process use them.
    #[inline]
    pub fn best() -> Level {
        static BEST: LazyLock<Level> = LazyLock::new(|| {
            let best = Level::available().into_iter().rfind(|level| *level != Level::PLAIN_FUSED);
            best.unwrap_or(Level::PLAIN)
        });
        *BEST
    }

    /// All levels of this processor, the best last.
    pub fn available() -> Vec<Level> {
        let mut levels = vec![Level::PLAIN, Level::PLAIN_FUSED];
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        levels.push(Level(Kind::Simd128));
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        levels.push(Level(Kind::Neon));
        #[cfg(target_arch = "x86_64")]
        {
            let steps = [
                (
                    Kind::Avx2,
                    is_x86_feature_detected!("avx2")
                        && is_x86_feature_detected!("fma")
                        && is_x86_feature_detected!("f16c"),
                ),
                (
                    Kind::Avx512,
                    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw"),
                ),
                (Kind::Avx512Vnni, is_x86_feature_detected!("avx512vnni")),
                (Kind::Avx512Bf16, is_x86_feature_detected!("avx512bf16")),
            ];
            // Each needs all before it.
            levels.extend(steps.iter().take_while(|step| step.1).map(|step| Level(step.0)));
            #[cfg(target_os = "linux")]
            if steps.iter().all(|step| step.1) && super::amx::is_allowed() {
                levels.push(Level(Kind::Amx));
            }
        }
        levels
    }

    /// The plain level whose results have the same bits as those of this one: with multiply-adds
    /// that round once where these do.
    pub fn definition(self) -> Level {
        match self.compiled() {
            Kind::Plain => Level::PLAIN,
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Kind::Simd128 => Level::PLAIN,
            _ => Level::PLAIN_FUSED,
        }
    }

    /// The set of instructions that kernels are compiled with. In WebAssembly it is one for all levels:
    /// a module is compiled with vectors or without, and each further set would add half of its size.
    #[inline(always)]
    fn compiled(self) -> Kind {
        match () {
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            () => Kind::Simd128,
            #[cfg(all(target_arch = "wasm32", not(target_feature = "simd128")))]
            () => Kind::Plain,
            #[cfg(not(target_arch = "wasm32"))]
            () => self.0,
        }
    }

    /// Whether sixteen lanes are one register.
    pub fn has_sixteen_lanes(self) -> bool {
        self.compiled() >= Kind::Avx512
    }

    /// Whether there is an instruction for [`ByteProducts`].
    pub fn has_byte_products(self) -> bool {
        self.compiled() >= Kind::Avx512Vnni
    }

    /// Whether there is an instruction for [`Bf16Products`].
    pub fn has_bf16_products(self) -> bool {
        self.compiled() >= Kind::Avx512Bf16
    }

    /// Whether there are instructions for [`tiles`](super::tiles), and the system lets them be used.
    #[inline]
    pub fn has_tiles(self) -> bool {
        self.compiled() >= Kind::Amx
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// Vectors of instructions that not every processor has.
pub(super) trait Guarded: Vector {
    /// A token to make them with.
    ///
    /// # Safety
    ///
    /// The processor has the instructions.
    unsafe fn token() -> Self::Token;
}

/// A trait of kernels, and the method that runs them: with the vectors of the line that has the
/// level, else plain.
macro_rules! kernels {
    ($(
        $(#[$doc:meta])*
        $kernel:ident over $vector:ident as $run:ident: $plain:ident {
            $($(#[$condition:meta])* $pattern:pat => $features:literal $wide:ty;)*
        }
    )*) => {$(
        $(#[$doc])*
        ///
        /// [`run`](Self::run) must be `#[inline(always)]`, and all that it calls.
        pub trait $kernel {
            /// What it returns.
            type Output;
            /// Runs it with these vectors.
            fn run<V: $vector>(self, token: V::Token) -> Self::Output;
        }

        impl Level {
            /// Runs a kernel with the instructions of this level.
            #[inline]
            pub fn $run<K: $kernel>(self, kernel: K) -> K::Output {
                match self.compiled() {
                    $($(#[$condition])*
                    $pattern => {
                        #[target_feature(enable = $features)]
                        fn run<K: $kernel>(kernel: K) -> K::Output {
                            // SAFETY: it is only called below, where the processor has them.
                            kernel.run::<$wide>(unsafe { <$wide as Guarded>::token() })
                        }
                        // SAFETY: there is a level only where the processor has its instructions.
                        #[allow(unused_unsafe, reason = "it is safe where every processor has them")]
                        unsafe { run(kernel) }
                    })*
                    // Where a level has nothing of its own, its definition.
                    _ => match self.definition() {
                        Level::PLAIN => kernel.run::<$plain<false>>(PlainToken),
                        _ => kernel.run::<$plain<true>>(PlainToken),
                    },
                }
            }
        }
    )*};
}

type PlainPair<const FUSED: bool> = Pair<Plain<FUSED>>;

kernels! {
    /// A kernel for vectors of eight lanes.
    EightKernel over Eight as run_eight: Plain {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 | Kind::Avx512Vnni | Kind::Avx512Bf16 | Kind::Amx
            => "avx2,fma,f16c" super::avx2::F32x8;
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Kind::Neon => "neon" super::neon::F32x8;
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Kind::Simd128 => "simd128" super::simd128::F32x8;
    }

    /// A kernel for vectors of sixteen lanes.
    SixteenKernel over Vector as run_sixteen: PlainPair {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512Vnni | Kind::Avx512Bf16 | Kind::Amx
            => "avx512f,avx512bw,avx512vnni" super::avx512::F32x16<{ super::avx512::VNNI }>;
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => "avx512f,avx512bw" super::avx512::F32x16;
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => "avx2,fma,f16c" Pair<super::avx2::F32x8>;
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Kind::Neon => "neon" Pair<super::neon::F32x8>;
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Kind::Simd128 => "simd128" Pair<super::simd128::F32x8>;
    }

    /// A kernel that gives values numbers, for vectors as wide as a register.
    NumbersKernel over Numbers as run_numbers: Plain {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 | Kind::Avx512Vnni | Kind::Avx512Bf16 | Kind::Amx
            => "avx512f,avx512bw" super::avx512::F32x16;
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => "avx2,fma,f16c" super::avx2::F32x8;
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Kind::Neon => "neon" super::neon::F32x8;
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Kind::Simd128 => "simd128" super::simd128::F32x8;
    }

    /// A kernel that multiplies bytes, for vectors of sixteen lanes.
    ByteKernel over ByteProducts as run_bytes: PlainPair {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512Vnni | Kind::Avx512Bf16 | Kind::Amx
            => "avx512f,avx512bw,avx512vnni" super::avx512::F32x16<{ super::avx512::VNNI }>;
    }

    /// A kernel that multiplies bf16, for vectors of sixteen lanes.
    Bf16Kernel over Bf16Products as run_bf16: PlainPair {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512Bf16 | Kind::Amx
            => "avx512f,avx512bw,avx512bf16" super::avx512::F32x16<{ super::avx512::BF16 }>;
    }
}
