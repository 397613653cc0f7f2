//! A scale for every block: the scales first, then the codes while they are written.

use super::error::ErrorSums;
use super::targets::EXCLUDE;
use super::tiles::{Tile, in_order, tiles};
use std::sync::Arc;
use weighbridge_codec::block::{
    BLOCK, BLOCKS_PER_SUPER, BlockEncoder, BlockRow, BlockType, Layout, Recipe,
};
use weighbridge_format::model::{Blockwise, Encoding, Produce, Target};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Error, Tensor, View};

/// How a matrix is to be quantized.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub method: BlockType,
    pub encoder: BlockEncoder,
    pub clip: (f32, f32),
    /// A weight for every column.
    pub importance: Option<Arc<Vec<f32>>>,
}

/// What was found out about a tile.
pub(super) struct Surveyed {
    scales: Vec<u8>,
    sub_scales: Vec<u8>,
    pub errors: ErrorSums,
}

impl Order {
    fn recipe(&self, tile: Tile) -> Recipe<'_> {
        let columns = to_len(tile.col)..to_len(tile.col + tile.len);
        Recipe {
            method: self.method,
            encoder: self.encoder,
            clip: self.clip,
            importance: self.importance.as_ref().and_then(|list| list.get(columns)),
        }
    }

    /// Bytes of scales, sub-scales and codes that a row of a tile has.
    fn lengths(&self, tile: Tile) -> (usize, usize, usize) {
        let blocks = to_len(tile.len).div_ceil(BLOCK);
        let codes = blocks * self.method.block_bytes();
        if self.method.has_super_blocks() {
            (2 * blocks.div_ceil(BLOCKS_PER_SUPER), blocks, codes)
        } else {
            (2 * blocks, 0, codes)
        }
    }

    /// Chooses the scales of a tile and measures what comes of it.
    pub(super) fn survey(&self, tensor: &Tensor, tile: Tile) -> Result<Surveyed, Error> {
        let recipe = self.recipe(tile);
        let cols = tensor.shape[1];
        let values = tile.values(tensor, cols)?;
        let (scale_len, share_len, code_len) = self.lengths(tile);
        let rows = to_len(tile.rows);
        let mut made = Surveyed {
            scales: vec![0; rows * scale_len],
            sub_scales: vec![0; rows * share_len],
            errors: ErrorSums::default(),
        };
        let (mut codes, mut decoded) = (vec![0; code_len], vec![0.0; to_len(tile.len)]);
        for (i, row) in values.chunks_exact(to_len(tile.len)).enumerate() {
            let scales = &mut made.scales[i * scale_len..][..scale_len];
            let sub_scales = &mut made.sub_scales[i * share_len..][..share_len];
            let encoded = recipe.encode(row, scales, sub_scales, &mut codes);
            let chosen = encoded.map_err(|e| e.to_string());
            chosen.and_then(|()| check_finite(scales)).map_err(|why| {
                let what = format!("tensor {:?}, row {}: {why}", tensor.name, tile.row + i as u64);
                Error::refused(what, Advice::set("clip", "bounds the values").and(EXCLUDE))
            })?;
            let cols = row.len();
            BlockRow { method: self.method, cols, scales, sub_scales, codes: &codes }
                .decode(&mut decoded);
            made.errors = made.errors.plus(ErrorSums::of(row, &decoded));
        }
        Ok(made)
    }

    /// The target of a tensor whose parts were surveyed, in order.
    pub(super) fn target(self, tensor: &Tensor, surveyed: Vec<Surveyed>) -> Option<Target> {
        let layout = Blockwise::layout(self.method, &tensor.shape)?;
        let mut scales = Vec::with_capacity(to_len(layout.codes));
        surveyed.iter().for_each(|s| scales.extend_from_slice(&s.scales));
        scales.resize(to_len(layout.sub_scales), 0);
        surveyed.iter().for_each(|s| scales.extend_from_slice(&s.sub_scales));
        scales.resize(to_len(layout.codes), 0);
        let blockwise = Arc::new(Blockwise::new(self.method, View::owned(scales)));
        let bounds = self.clip;
        let data =
            Codes { tensor: tensor.clone(), order: self, layout, blockwise: blockwise.clone() };
        Some(Target { encoding: Encoding::Blockwise(blockwise), data: Arc::new(data), bounds })
    }
}

/// The reference tool lets scales become infinite; a file with such values is of no use.
fn check_finite(scales: &[u8]) -> Result<(), String> {
    // An exponent of all ones.
    match scales.chunks_exact(2).position(|f16| f16[1] & 0x7C == 0x7C) {
        None => Ok(()),
        Some(i) => Err(format!("scale {i} of the row is beyond the range of f16")),
    }
}

/// Makes the codes of a matrix while they are written.
#[derive(Debug)]
struct Codes {
    tensor: Tensor,
    order: Order,
    layout: Layout,
    blockwise: Arc<Blockwise>,
}

impl Codes {
    fn make(&self, tile: Tile) -> Result<Vec<u8>, Error> {
        let recipe = self.order.recipe(tile);
        let values = tile.values(&self.tensor, self.layout.cols)?;
        let (scale_len, share_len, code_len) = self.order.lengths(tile);
        let mut codes = vec![0; to_len(tile.rows) * code_len];
        let all_scales = self.blockwise.scale_bytes()?;
        // A tile of a long row begins at a whole super block.
        let block = to_len(tile.col) / BLOCK;
        let scale = 2 * if share_len > 0 { block / BLOCKS_PER_SUPER } else { block };
        let each = values.chunks_exact(to_len(tile.len)).zip(codes.chunks_exact_mut(code_len));
        for (row, (values, codes)) in (tile.row..).zip(each) {
            let (scales, sub_scales) = self.layout.row_scales(all_scales, row);
            let sub_scales = if share_len > 0 { &sub_scales[block..][..share_len] } else { &[] };
            recipe.make_codes(values, &scales[scale..][..scale_len], sub_scales, codes);
        }
        Ok(codes)
    }
}

impl Produce for Codes {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        in_order(&tiles(self.layout.rows, self.layout.cols), |tile| self.make(tile), out)
    }
}
