//! What each chosen tensor becomes.

use super::blocks::Order;
use super::calibrate::Calibrated;
use super::tiles::{Tile, tiles};
use super::{
    Calibration, Domain, ErrorSums, KeptReason, Method, Quantization, QuantizeSettings, calibrate,
    per_tensor,
};
use weighbridge_codec::integer::Width;
use weighbridge_codec::parallel::*;
use weighbridge_encoder::Encoder;
use weighbridge_format::model::Target;
use weighbridge_format::{Advice, Error, Progress, Stage, Tensor};

/// A tensor's number, how it shall be stored, and the error that this makes.
pub(super) type TensorTarget = (usize, Target, ErrorSums);

/// What helps where a tensor can't be quantized.
pub(super) const EXCLUDE: Advice = Advice::Set {
    option: "exclude",
    value: std::borrow::Cow::Borrowed(""),
    effect: std::borrow::Cow::Borrowed("keeps the tensor as it is"),
};

impl Quantization<'_> {
    /// What each chosen tensor becomes, and which biases go with that.
    pub(super) fn targets(&mut self, progress: &mut Progress) -> Result<Calibrated, Error> {
        let values = self.chosen.iter().map(|c| self.container.tensors[c.tensor].count()).sum();
        self.container.limit_values(values)?;
        progress.begin(Stage::Scanning, Some(values))?;
        let (orders, per_tensor) = self.orders(progress)?;
        let model = self.model.clone().filter(|_| self.calibrates);
        let Some(model) = model else {
            let targets = self.by_themselves(orders, per_tensor, progress)?;
            return Ok(Calibrated { targets, biases: Vec::new() });
        };
        let nobody_asked = self.settings.calibration == Calibration::Automatic;
        let of_products = match calibrate::are_of_products(&self.container, &model, &orders) {
            Ok(found) => found,
            Err(Error::Refused(_)) if nobody_asked => vec![false; orders.len()],
            Err(other) => return Err(other),
        };
        let (mut products, mut others) = (Vec::new(), Vec::new());
        for (order, of_product) in orders.into_iter().zip(of_products) {
            if of_product { &mut products } else { &mut others }.push(order);
        }
        let mut targets = self.by_themselves(others, per_tensor, progress)?;
        match self.calibrate(&model, &mut targets, &products, progress) {
            Ok(mut calibrated) => {
                calibrated.targets.extend(targets);
                return Ok(calibrated);
            }
            Err(Error::Refused(_)) if nobody_asked => self.calibrates = false,
            Err(other) => return Err(other),
        }
        targets.extend(self.by_themselves(products, Vec::new(), progress)?);
        Ok(Calibrated { targets, biases: Vec::new() })
    }

    /// Rounds the weights of products, when what becomes of all others is known.
    fn calibrate(
        &self,
        model: &Encoder,
        others: &mut [TensorTarget],
        products: &Orders,
        progress: &mut Progress,
    ) -> Result<Calibrated, Error> {
        if products.is_empty() {
            return Err(Error::refused("there is nothing to calibrate", ""));
        }
        let start = calibrate::with_stored(&self.container, others)?;
        // Others than what can't be quantized are kept because somebody wants that.
        let kept = |name: &str| self.kept.iter().find(|kept| kept.name == name);
        let may_change =
            |name: &str| kept(name).is_some_and(|k| k.reason == KeptReason::Unsuitable);
        let texts = &self.settings.calibration;
        calibrate::run(&self.container, &start, model, products, texts, &may_change, progress)
    }

    /// Quantizes tensors without an eye to what they are for.
    fn by_themselves(
        &self,
        orders: Orders,
        per_tensor: PerTensor,
        progress: &mut Progress,
    ) -> Result<Vec<TensorTarget>, Error> {
        let indices = orders.iter().map(|o| o.0).chain(per_tensor.iter().map(|o| o.0));
        let values = indices.map(|index| self.container.tensors[index].count()).sum::<u64>();
        if values == 0 {
            return Ok(Vec::new());
        }
        progress.begin(Stage::Quantizing, Some(values))?;
        let mut list = Vec::new();
        for (index, width, clip) in per_tensor {
            let tensor = &self.container.tensors[index];
            let (target, errors) = per_tensor::target(tensor, width, self.settings.domain, clip)?;
            progress.advance(tensor.count())?;
            list.push((index, target, errors));
        }
        list.extend(self.block_targets(orders, progress)?);
        Ok(list)
    }

    /// The chosen tensors by the kind of their method, with the bounds of their values.
    fn orders(&self, progress: &mut Progress) -> Result<(Orders, PerTensor), Error> {
        let (mut orders, mut per_tensor) = (Vec::new(), Vec::new());
        let importance = self.settings.importance.as_ref();
        let mut is_used = false;
        for chosen in &self.chosen {
            let tensor = &self.container.tensors[chosen.tensor];
            let clip = bounds(tensor, self.settings, progress)?;
            match chosen.method {
                Method::Blocks(codec) => {
                    let importance = match importance {
                        Some(importance) => importance.of(tensor)?,
                        None => None,
                    };
                    is_used |= importance.is_some();
                    let order = Order { codec, encoder: self.settings.encoder, clip, importance };
                    orders.push((chosen.tensor, order));
                }
                Method::PerTensor(width) => per_tensor.push((chosen.tensor, width, clip)),
                Method::UnitRows | Method::Product { .. } | Method::Keep => {}
            }
        }
        if importance.is_some() && !is_used {
            return Err(Error::refused(
                "the importance fits none of the tensors",
                "its tensors have the names of the weights, or there is one with a number a column",
            ));
        }
        Ok((orders, per_tensor))
    }

    fn block_targets(
        &self,
        orders: Orders,
        progress: &mut Progress,
    ) -> Result<Vec<TensorTarget>, Error> {
        // The tiles of all tensors in one list, so that small tensors keep all cores busy too.
        let all: Vec<(usize, Tile)> = orders
            .iter()
            .enumerate()
            .flat_map(|(i, (tensor, order))| {
                let shape = &self.container.tensors[*tensor].shape;
                tiles(shape[0], shape[1], order.codec.cut()).into_iter().map(move |tile| (i, tile))
            })
            .collect();
        let mut surveyed: Vec<Vec<_>> = orders.iter().map(|_| Vec::new()).collect();
        // A few at a time, so that the bar moves.
        for some in all.chunks(16 * current_num_threads()) {
            let survey = |(i, tile): &(usize, Tile)| {
                let (tensor, order) = &orders[*i];
                order.survey(&self.container.tensors[*tensor], *tile)
            };
            let made = some.par_iter().map(survey).collect::<Result<Vec<_>, _>>()?;
            progress.advance(some.iter().map(|(_, tile)| tile.count()).sum())?;
            some.iter().zip(made).for_each(|((i, _), made)| surveyed[*i].push(made));
        }
        let mut list = Vec::new();
        for ((index, order), surveyed) in orders.into_iter().zip(surveyed) {
            let tensor = &self.container.tensors[index];
            let errors =
                surveyed.iter().map(|s| s.errors).fold(ErrorSums::default(), ErrorSums::plus);
            let too_large = || Error::refused(format!("{:?} is too large", tensor.name), "");
            let target = order.target(tensor, &surveyed).ok_or_else(too_large)?;
            list.push((index, target, errors));
        }
        Ok(list)
    }
}

type Orders = Vec<(usize, Order)>;
type PerTensor = Vec<(usize, Width, (f32, f32))>;

/// The bounds of a tensor's values: as asked for, else from the values, which must all be finite.
fn bounds(
    tensor: &Tensor,
    settings: &QuantizeSettings,
    progress: &mut Progress,
) -> Result<(f32, f32), Error> {
    let cols = tensor.shape.last().copied().unwrap_or(1);
    let rows = tensor.count() / cols.max(1);
    let of_tile = |tile: &Tile| {
        let values = tile.values(tensor, cols)?;
        let (mut low, mut high, mut poison) = (f32::INFINITY, f32::NEG_INFINITY, 0.0);
        for &v in &values {
            low = low.min(v);
            high = high.max(v);
            // Not zero exactly when some value is NaN or infinite.
            poison += v * 0.0;
        }
        if poison == 0.0 {
            return Ok((low, high));
        }
        let at = values.iter().position(|v| !v.is_finite()).unwrap_or(0);
        let (name, index) = (&tensor.name, tile.start(cols) + at as u64);
        let value = values[at];
        let message =
            format!("tensor {name:?} has {value} at index {index} and can't be quantized");
        Err(Error::refused(message, EXCLUDE))
    };
    let wider = |a: (f32, f32), b: (f32, f32)| Ok((a.0.min(b.0), a.1.max(b.1)));
    let none = || (f32::INFINITY, f32::NEG_INFINITY);
    let (mut low, mut high) = none();
    // A few at a time, so that progress is told.
    for few in tiles(rows, cols, 1).chunks(64 * current_num_threads()) {
        let found = few.par_iter().map(of_tile).try_reduce(none, wider)?;
        (low, high) = (low.min(found.0), high.max(found.1));
        progress.advance(few.iter().map(Tile::count).sum())?;
    }
    let most = low.abs().max(high.abs());
    Ok(settings.clip.unwrap_or(match settings.domain {
        Domain::Weights => (-most, most),
        Domain::Activations => (low, high),
    }))
}
