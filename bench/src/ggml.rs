//! The quantization of ggml, from its shared library.

use crate::Outcome;
use libloading::Library;
use std::ffi::c_void;
use std::path::Path;

type Quantize = unsafe extern "C" fn(*const f32, *mut c_void, i64, i64, *const f32) -> usize;
type Dequantize = unsafe extern "C" fn(*const c_void, *mut f32, i64);

/// A quantized type of ggml.
pub struct Type {
    pub name: &'static str,
    /// In the names of functions.
    symbol: &'static str,
    /// Values and bytes of a block.
    block: (usize, usize),
}

impl Type {
    pub const Q8_0: Type = Type { name: "Q8_0", symbol: "q8_0", block: (32, 34) };
    pub const Q4_0: Type = Type { name: "Q4_0", symbol: "q4_0", block: (32, 18) };
    pub const Q6_K: Type = Type { name: "Q6_K", symbol: "q6_K", block: (256, 210) };
    pub const Q4_K: Type = Type { name: "Q4_K", symbol: "q4_K", block: (256, 144) };
    pub const Q3_K: Type = Type { name: "Q3_K", symbol: "q3_K", block: (256, 110) };
    pub const Q2_K: Type = Type { name: "Q2_K", symbol: "q2_K", block: (256, 84) };
}

/// The two functions of a type.
pub struct Codec {
    block: (usize, usize),
    quantize: Quantize,
    dequantize: Dequantize,
    /// Where the functions are.
    _library: Library,
}

impl Codec {
    pub fn load(library: &Path, of: &Type) -> Outcome<Codec> {
        // SAFETY: the library has no initialisers that depend on anything, and the functions have
        // these types in the release that is built.
        unsafe {
            let library = Library::new(library)?;
            Ok(Codec {
                block: of.block,
                quantize: *library.get(format!("quantize_{}", of.symbol).as_bytes())?,
                dequantize: *library.get(format!("dequantize_row_{}", of.symbol).as_bytes())?,
                _library: library,
            })
        }
    }

    /// Bytes of so many values; they fill whole blocks.
    pub fn size(&self, values: usize) -> usize {
        assert_eq!(values % self.block.0, 0);
        values / self.block.0 * self.block.1
    }

    /// As one long row, without an importance matrix.
    pub fn quantize(&self, values: &[f32], out: &mut [u8]) {
        assert_eq!(out.len(), self.size(values.len()));
        let (count, none) = (values.len() as i64, std::ptr::null());
        // SAFETY: it reads so many values and writes as many bytes as was asserted.
        let size =
            unsafe { (self.quantize)(values.as_ptr(), out.as_mut_ptr().cast(), 1, count, none) };
        assert_eq!(size, out.len());
    }

    pub fn dequantize(&self, quantized: &[u8], out: &mut [f32]) {
        assert_eq!(quantized.len(), self.size(out.len()));
        // SAFETY: it writes so many values and reads as many bytes as was asserted.
        unsafe {
            (self.dequantize)(quantized.as_ptr().cast(), out.as_mut_ptr(), out.len() as i64);
        }
    }
}
