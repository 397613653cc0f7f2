//! Memory for what is kept: zeroed by the system, and in huge pages where there are such.
//!
//! The weights of a model are filled once, and read from one end to the other for every batch. In pages of
//! four kilobytes the system has to hand out ten thousand of them for a small model, which takes longer than
//! packing the weights, and the processor has to look up as many addresses each time they are read. A huge
//! page has two megabytes. Matrices are smaller or not much larger than that, so they share blocks.

use crate::panel::{PANEL, Stretch};
#[cfg(feature = "mmap")]
use memmap2::{MmapMut, MmapRaw};
use std::ops::{Deref, DerefMut};
#[cfg(feature = "mmap")]
use std::sync::{Arc, Mutex, PoisonError};

/// What is smaller comes from where all other memory does.
#[cfg(feature = "mmap")]
const WORTH_MAPPING: usize = 1 << 16;

/// Bytes of a huge page.
#[cfg(feature = "mmap")]
const HUGE: usize = 2 << 20;

/// Bytes of a block. What is not used of it was never handed out by the system.
#[cfg(feature = "mmap")]
const BLOCK: usize = 32 << 20;

/// Memory begins at such addresses, which are those of cache lines.
#[cfg(feature = "mmap")]
const LINE: usize = 64;

/// Where things that are kept together get their memory. A block is given back when all that is in it is.
#[derive(Debug, Default)]
pub struct Arena {
    #[cfg(feature = "mmap")]
    block: Mutex<Option<Block>>,
}

/// A block, and where the first byte is in it that nobody has.
#[cfg(feature = "mmap")]
#[derive(Debug)]
struct Block {
    memory: Arc<MmapRaw>,
    free: usize,
}

/// Numbers, alone or several together, of which those with all bits zero are zeros.
pub trait Number: Copy + Send + Sync + sealed::Sealed {
    /// That one.
    const ZERO: Self;
}

impl Number for f32 {
    const ZERO: f32 = 0.0;
}

impl Number for [i16; 2] {
    const ZERO: [i16; 2] = [0; 2];
}

impl<const FOURS: usize, const FACTORS: usize> Number for Stretch<FOURS, FACTORS> {
    const ZERO: Self =
        Stretch { fours: [[[0; 4]; PANEL]; FOURS], factors: [[0.0; PANEL]; FACTORS] };
}

mod sealed {
    /// Nobody else can say of a type that it is a number.
    pub trait Sealed {}
    impl<const FOURS: usize, const FACTORS: usize> Sealed for super::Stretch<FOURS, FACTORS> {}
    impl Sealed for f32 {}
    impl Sealed for [i16; 2] {}
}

/// Numbers that belong to one owner, all of them zero at first.
#[derive(Debug)]
pub struct Numbers<T>(Memory<T>);

#[derive(Debug)]
enum Memory<T> {
    Own(Vec<T>),
    /// A part of a block that was handed out once, here.
    #[cfg(feature = "mmap")]
    Shared {
        block: Arc<MmapRaw>,
        start: usize,
        count: usize,
    },
}

impl Arena {
    /// So many numbers.
    pub fn zeros<T: Number>(&self, count: usize) -> Numbers<T> {
        #[cfg(feature = "mmap")]
        if let Some(numbers) = self.mapped(count) {
            return numbers;
        }
        Numbers::from(vec![T::ZERO; count])
    }

    /// None where that is not worth it, or not possible.
    #[cfg(feature = "mmap")]
    fn mapped<T: Number>(&self, count: usize) -> Option<Numbers<T>> {
        let bytes = count.checked_mul(size_of::<T>()).filter(|bytes| *bytes >= WORTH_MAPPING)?;
        let mut current = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = |block: &Block| block.memory.len() - block.free >= bytes;
        if !current.as_ref().is_some_and(has_room) {
            *current = Some(Block::new(bytes)?);
        }
        let Block { memory, free } = current.as_mut()?;
        let start = *free;
        *free = (start + bytes).next_multiple_of(LINE).min(memory.len());
        Some(Numbers(Memory::Shared { block: memory.clone(), start, count }))
    }
}

#[cfg(feature = "mmap")]
impl Block {
    /// Room for at least so many bytes.
    fn new(bytes: usize) -> Option<Block> {
        // One page more, so that the first can begin where a huge one does.
        let length = bytes.checked_next_multiple_of(HUGE)?.max(BLOCK).checked_add(HUGE)?;
        let memory = MmapMut::map_anon(length).ok()?;
        // Where it can't be had, small pages do.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        let memory = MmapRaw::from(memory);
        let free = memory.as_ptr().align_offset(HUGE).min(HUGE);
        Some(Block { memory: Arc::new(memory), free })
    }
}

impl<T> From<Vec<T>> for Numbers<T> {
    fn from(numbers: Vec<T>) -> Self {
        Numbers(Memory::Own(numbers))
    }
}

impl<T> Deref for Numbers<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Memory::Own(numbers) => numbers,
            #[cfg(feature = "mmap")]
            Memory::Shared { block, start, count } => {
                // SAFETY: these bytes lie within the block, begin with a cache line, and are zeros or numbers
                // that were put there: `mapped` saw to that. It handed them out once, so that nobody
                // else has them, and the block lives as long as this.
                unsafe { std::slice::from_raw_parts(block.as_ptr().add(*start).cast(), *count) }
            }
        }
    }
}

impl<T> DerefMut for Numbers<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Memory::Own(numbers) => numbers,
            #[cfg(feature = "mmap")]
            Memory::Shared { block, start, count } => {
                // SAFETY: as above, and whoever asks has this for themselves.
                unsafe {
                    std::slice::from_raw_parts_mut(block.as_mut_ptr().add(*start).cast(), *count)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of many sizes, filled by several threads, hold what each was filled with, also when the arena
    /// and some of them are gone.
    #[test]
    fn everybody_has_memory_of_their_own() {
        let counts = [0, 1, 15, 16_383, 16_384, 16_385, 300_000, 5_000_000, 9_000_001, 400_000];
        let (mut floats, mut pairs): (Vec<_>, Vec<_>) = {
            let arena = Arena::default();
            let floats = counts.map(|count| arena.zeros::<f32>(count));
            (floats.into(), counts.map(|count| arena.zeros::<[i16; 2]>(count)).into())
        };
        for (count, (floats, pairs)) in counts.iter().zip(floats.iter().zip(&pairs)) {
            assert_eq!((floats.len(), pairs.len()), (*count, *count));
            assert!(floats.iter().all(|v| *v == 0.0) && pairs.iter().all(|v| *v == [0; 2]));
        }
        std::thread::scope(|scope| {
            for (i, (floats, pairs)) in floats.iter_mut().zip(&mut pairs).enumerate() {
                scope.spawn(move || {
                    floats.fill(i as f32);
                    pairs.fill([i as i16; 2]);
                });
            }
        });
        floats.drain(5..8);
        for (i, floats) in [0, 1, 2, 3, 4, 8, 9].into_iter().zip(floats) {
            assert!(floats.iter().all(|v| *v == i as f32), "{i}");
        }
        for (i, pairs) in pairs.iter().enumerate() {
            assert!(pairs.iter().all(|v| *v == [i as i16; 2]), "{i}");
        }
    }

    #[cfg(feature = "mmap")]
    #[test]
    fn large_pieces_share_blocks_and_begin_with_cache_lines() {
        let arena = Arena::default();
        let pieces: Vec<_> = [100_000, 100_001, 20_000, 7].map(|n| arena.zeros::<f32>(n)).into();
        let shared = |numbers: &Numbers<f32>| match &numbers.0 {
            Memory::Own(_) => None,
            Memory::Shared { block, .. } => Some(block.as_ptr()),
        };
        let blocks: Vec<_> = pieces.iter().map(shared).collect();
        assert!(blocks[0].is_some() && blocks[..3].iter().all(|block| *block == blocks[0]));
        assert_eq!(blocks[3], None);
        assert_eq!(pieces[0].as_ptr().align_offset(HUGE), 0);
        assert!(pieces[..3].iter().all(|piece| piece.as_ptr().align_offset(LINE) == 0));
        // More than a block has a block of its own, and sizes that nobody has are refused as always.
        let large = arena.zeros::<f32>(BLOCK / 2);
        assert!(shared(&large).is_some_and(|block| Some(block) != blocks[0]));
        assert!(arena.mapped::<f32>(usize::MAX / 4).is_none());
    }
}
