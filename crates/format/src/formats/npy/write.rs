//! Container to planned bytes: what `numpy.save` writes for the same array.

use super::super::FormatInfo;
use super::header;
use crate::model::Container;
use crate::plan::{FilePlan, Piece, Plan, Report, RowLayout, fit};
use crate::{Error, Options};
use weighbridge_codec::DType;

/// f32 values behind a header, whose length is the same for any number of rows.
pub(super) const ROWS: RowLayout = RowLayout {
    name: "npy",
    front: |rows, dim| header::to_bytes(DType::F32, &[rows, dim]).unwrap_or_default(),
    ..RowLayout::PLAIN
};

pub(super) fn plan(container: &Container, _: &Options, info: &FormatInfo) -> Result<Plan, Error> {
    let mut report = Report::default();
    let placements = fit(container, &info.holds, &mut report)?;
    // Without its one array there is no file, so that this is more than a loss.
    let placed = placements.first().and_then(|p| Some((p, container.tensors.get(p.tensor)?)));
    let Some((placement, tensor)) = placed else {
        return Err(report.nothing_fits(".npy", ""));
    };
    let front = header::to_bytes(placement.encoding.stored(), &tensor.shape).ok_or_else(|| {
        Error::refused(format!("no .npy header can describe tensor {:?}", tensor.name), "")
    })?;
    let mut file = FilePlan::default();
    file.push(Piece::Bytes(front));
    file.push(Piece::tensor(tensor, &placement.encoding, placement.bytes));
    Ok(Plan::single(file, report))
}
