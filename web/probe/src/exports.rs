//! What a page or Node calls: memory to put a bundle into, and the text that comes of it.
#![cfg(target_arch = "wasm32")]

use crate::{Bundle, tell};

/// Memory for a bundle of so many bytes, which [`answer`] takes.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    Box::leak(vec![0; length].into_boxed_slice()).as_mut_ptr()
}

/// Says what is in a bundle. The text is behind its length of 32 bits, and stays.
///
/// # Safety
/// Pointer and length are those of [`reserve`], and are used once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(bundle: *mut u8, length: usize) -> *const u8 {
    // SAFETY: the block was leaked by `reserve` with this length, and nobody else has it.
    let bytes = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(bundle, length)) };
    let told = Bundle::from_bytes(&bytes).map_or(serde_json::Value::Null, tell);
    let text = told.to_string().into_bytes();
    let mut out = u32::try_from(text.len()).unwrap_or(0).to_le_bytes().to_vec();
    out.extend(text);
    Box::leak(out.into_boxed_slice()).as_ptr()
}
