//! Codes in blocks: what stands before them first, then the codes while they are written.

use super::error::ErrorSums;
use super::targets::EXCLUDE;
use super::tiles::{Tile, in_order, tiles};
use std::sync::Arc;
use weighbridge_codec::block::{
    BlockCodec, BlockEncoder, FRONT_REGIONS, Front, FrontMut, Layout, Recipe,
};
use weighbridge_format::model::{BlockCoded, Encoding, Produce, Target};
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Error, Tensor, View};

/// How a matrix is to be quantized.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub codec: &'static dyn BlockCodec,
    pub encoder: BlockEncoder,
    pub clip: (f32, f32),
    /// A weight for every column.
    pub importance: Option<Arc<Vec<f32>>>,
}

/// What was found out about a tile.
pub(super) struct Surveyed {
    /// What the rows have in each region before the codes.
    front: [Vec<u8>; FRONT_REGIONS],
    pub errors: ErrorSums,
}

impl Surveyed {
    fn front(&self) -> Front<'_> {
        self.front.each_ref().map(Vec::as_slice)
    }

    /// What a row has there, which is so much in each region.
    fn row(&mut self, row: usize, sizes: [usize; FRONT_REGIONS]) -> FrontMut<'_> {
        let [first, second] = &mut self.front;
        [&mut first[row * sizes[0]..][..sizes[0]], &mut second[row * sizes[1]..][..sizes[1]]]
    }
}

impl Order {
    fn recipe(&self, tile: Tile) -> Recipe<'_> {
        let columns = to_len(tile.col)..to_len(tile.col + tile.len);
        let importance = self.importance.as_ref().and_then(|list| list.get(columns));
        Recipe { encoder: self.encoder, clip: self.clip, importance }
    }

    /// Chooses what stands before the codes of a tile, and measures what comes of it.
    pub(super) fn survey(&self, tensor: &Tensor, tile: Tile) -> Result<Surveyed, Error> {
        let recipe = self.recipe(tile);
        let values = tile.values(tensor, tensor.shape[1])?;
        let (len, rows) = (to_len(tile.len), to_len(tile.rows));
        let sizes = self.codec.front_sizes(len);
        let front = sizes.map(|size| vec![0; rows * size]);
        let mut made = Surveyed { front, errors: ErrorSums::default() };
        let (mut codes, mut decoded) = (vec![0; self.codec.codes().size(len)], vec![0.0; len]);
        for (i, row) in values.chunks_exact(len).enumerate() {
            let front = made.row(i, sizes);
            self.codec.encode(&recipe, row, front, &mut codes).map_err(|why| {
                let what = format!("tensor {:?}, row {}: {why}", tensor.name, tile.row + i as u64);
                Error::refused(what, Advice::set("clip", "bounds the values").and(EXCLUDE))
            })?;
            let front = made.row(i, sizes).map(|bytes| &*bytes);
            self.codec.decode(front, &codes, 0, &mut decoded);
            made.errors = made.errors.plus(ErrorSums::of(row, &decoded));
        }
        Ok(made)
    }

    /// The target of a tensor whose parts were surveyed, in order.
    pub(super) fn target(self, tensor: &Tensor, surveyed: &[Surveyed]) -> Option<Target> {
        let layout = BlockCoded::layout_of(self.codec, &tensor.shape)?;
        let front = View::owned(layout.join_fronts(surveyed.iter().map(Surveyed::front)));
        let blocks = Arc::new(BlockCoded::new(self.codec, front));
        let bounds = self.clip;
        let data = Codes { tensor: tensor.clone(), order: self, layout, blocks: blocks.clone() };
        Some(Target { encoding: Encoding::Blocks(blocks), data: Arc::new(data), bounds })
    }
}

/// Makes the codes of a matrix while they are written.
#[derive(Debug)]
struct Codes {
    tensor: Tensor,
    order: Order,
    layout: Layout,
    blocks: Arc<BlockCoded>,
}

impl Codes {
    fn make(&self, tile: Tile) -> Result<Vec<u8>, Error> {
        let (recipe, codec) = (self.order.recipe(tile), self.order.codec);
        let values = tile.values(&self.tensor, self.layout.cols)?;
        let width = codec.codes().size(to_len(tile.len));
        let mut codes = vec![0; to_len(tile.rows) * width];
        let front = self.blocks.front_bytes()?;
        let each = values.chunks_exact(to_len(tile.len)).zip(codes.chunks_exact_mut(width));
        for (row, (values, codes)) in (tile.row..).zip(each) {
            let front = self.layout.front_of(front, row, tile.col..tile.col + tile.len);
            codec.make_codes(&recipe, values, front, codes);
        }
        Ok(codes)
    }
}

impl Produce for Codes {
    fn produce(&self, out: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let Layout { rows, cols, codec, .. } = self.layout;
        in_order(&tiles(rows, cols, codec.cut()), |tile| self.make(tile), out)
    }
}
