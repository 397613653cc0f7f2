//! The instructions for tiles (AMX). The compiler has no names for them that are settled, so they are
//! written as they are. It uses none of the tiles' registers itself, so that they stay as they were left
//! from one block of instructions to the next.

use super::tiles::{ColumnTile, RowTile, Sums};
use std::arch::asm;
use std::arch::x86_64::__cpuid_count;

/// Whether the processor has tiles of bf16 and the system lets this process use them, which has to be
/// asked for.
pub(super) fn is_allowed() -> bool {
    /// The bits of leaf 7 for tiles, and for tiles of bf16.
    const TILES: u32 = 1 << 24 | 1 << 22;
    /// `arch_prctl`, what is asked of it, and the number of the tiles' registers.
    const CALL: (i64, u64, u64) = (158, 0x1023, 18);
    // SAFETY: every processor of 64 bits has the instruction.
    #[allow(unused_unsafe, reason = "newer compilers know that")]
    let [count, leaf] = unsafe { [__cpuid_count(0, 0).eax, __cpuid_count(7, 0).edx] };
    if count < 7 || leaf & TILES != TILES {
        return false;
    }
    let result: i64;
    // SAFETY: it is a call of the system, which changes `rax`, `rcx` and `r11` and no memory.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") CALL.0 => result,
            in("rdi") CALL.1,
            in("rsi") CALL.2,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result == 0
}

/// What the tiles' registers hold: sixteen rows of 64 bytes, all of them.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// Prepares this thread for products of tiles.
///
/// # Safety
///
/// They are allowed.
#[inline]
pub(super) unsafe fn prepare() {
    const ALL: Configuration = Configuration {
        palette: 1,
        start: 0,
        reserved: [0; 14],
        row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
        rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
    };
    // SAFETY: tiles are allowed, and it reads the 64 bytes of the configuration.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &ALL, options(nostack, readonly, preserves_flags)) };
}

/// Gives the registers back, so that the system need not keep them for this thread.
///
/// # Safety
///
/// Tiles are allowed.
#[inline]
pub(super) unsafe fn release() {
    // SAFETY: tiles are allowed.
    unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
}

/// Defines a product of tiles by the instructions before all steps, of a step, and behind all. Rows are in
/// the registers 4 and 5, columns in 6 and 7.
macro_rules! products {
    ($($name:ident: [$($before:literal)*] [$($step:literal)*] [$($behind:literal)*];)*) => {$(
        /// The sums of the products of `count` tiles. At each step, some lines are prefetched from where
        /// `soon` says.
        ///
        /// # Safety
        ///
        /// The thread is prepared. There are `count` tiles behind each pointer, at least one, and room
        /// for the sums.
        #[inline]
        pub(super) unsafe fn $name(
            rows: [*const RowTile; 2],
            columns: [*const ColumnTile; 2],
            count: usize,
            (soon, lines): (*const u8, usize),
            sums: *mut Sums,
        ) {
            // SAFETY: tiles are read and sums are written where the caller says; prefetching neither
            // reads nor writes, whatever the address.
            unsafe {
                asm!(
                    $($before,)*
                    "2:",
                    $($step,)*
                    "add {row0}, 1024",
                    "add {row1}, 1024",
                    "add {column0}, 1024",
                    "add {column1}, 1024",
                    "mov {left}, {lines}",
                    "test {left}, {left}",
                    "jz 4f",
                    "3:",
                    "prefetcht1 [{soon}]",
                    "add {soon}, 64",
                    "dec {left}",
                    "jnz 3b",
                    "4:",
                    "dec {count}",
                    "jnz 2b",
                    $($behind,)*
                    row0 = inout(reg) rows[0] => _,
                    row1 = inout(reg) rows[1] => _,
                    column0 = inout(reg) columns[0] => _,
                    column1 = inout(reg) columns[1] => _,
                    count = inout(reg) count => _,
                    soon = inout(reg) soon => _,
                    lines = in(reg) lines,
                    left = out(reg) _,
                    sums = in(reg) sums,
                    stride = in(reg) 64usize,
                    options(nostack),
                );
            }
        }
    )*};
}

products! {
    multiply_1_1:
        ["tilezero tmm0"]
        [
            "tileloadd tmm4, [{row0} + {stride}]"
            "tileloadd tmm6, [{column0} + {stride}]"
            "tdpbf16ps tmm0, tmm4, tmm6"
        ]
        ["tilestored [{sums} + {stride}], tmm0"];
    multiply_1_2:
        ["tilezero tmm0" "tilezero tmm1"]
        [
            "tileloadd tmm4, [{row0} + {stride}]"
            "tileloadd tmm6, [{column0} + {stride}]"
            "tdpbf16ps tmm0, tmm4, tmm6"
            "tileloadd tmm7, [{column1} + {stride}]"
            "tdpbf16ps tmm1, tmm4, tmm7"
        ]
        ["tilestored [{sums} + {stride}], tmm0" "tilestored [{sums} + {stride} + 1024], tmm1"];
    multiply_2_1:
        ["tilezero tmm0" "tilezero tmm1"]
        [
            "tileloadd tmm4, [{row0} + {stride}]"
            "tileloadd tmm6, [{column0} + {stride}]"
            "tdpbf16ps tmm0, tmm4, tmm6"
            "tileloadd tmm5, [{row1} + {stride}]"
            "tdpbf16ps tmm1, tmm5, tmm6"
        ]
        ["tilestored [{sums} + {stride}], tmm0" "tilestored [{sums} + {stride} + 1024], tmm1"];
    multiply_2_2:
        ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"]
        [
            "tileloadd tmm4, [{row0} + {stride}]"
            "tileloadd tmm6, [{column0} + {stride}]"
            "tdpbf16ps tmm0, tmm4, tmm6"
            "tileloadd tmm7, [{column1} + {stride}]"
            "tdpbf16ps tmm1, tmm4, tmm7"
            "tileloadd tmm5, [{row1} + {stride}]"
            "tdpbf16ps tmm2, tmm5, tmm6"
            "tdpbf16ps tmm3, tmm5, tmm7"
        ]
        [
            "tilestored [{sums} + {stride}], tmm0"
            "tilestored [{sums} + {stride} + 1024], tmm1"
            "tilestored [{sums} + {stride} + 2048], tmm2"
            "tilestored [{sums} + {stride} + 3072], tmm3"
        ];
}
