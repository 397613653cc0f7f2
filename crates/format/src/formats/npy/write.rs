//! Container to planned bytes: what `numpy.save` writes for the same array.

use super::super::FormatInfo;
use super::header;
use crate::model::{Container, FilePlan, Piece, Plan, Report, fit};
use crate::{Error, Options};

pub(super) fn plan(
    container: &Container,
    options: &Options,
    info: &FormatInfo,
) -> Result<Plan, Error> {
    let mut report = Report::default();
    let placements = fit(container, &info.holds, options, &mut report)?;
    // Without its one array there is no file, so that this is more than a loss.
    let placed = placements.first().and_then(|p| Some((p, container.tensors.get(p.tensor)?)));
    let Some((placement, tensor)) = placed else {
        let why = report.losses.last().map(|l| format!("{}: {}", l.what, l.why));
        return Err(Error::refused(
            format!("nothing can be written as .npy; {}", why.unwrap_or_default()),
            "",
        ));
    };
    let front = header::to_bytes(placement.encoding.stored(), &tensor.shape).ok_or_else(|| {
        Error::refused(format!("no .npy header can describe tensor {:?}", tensor.name), "")
    })?;
    let mut file = FilePlan::default();
    file.push(Piece::Bytes(front));
    file.push(Piece::tensor(tensor, &placement.encoding, placement.bytes));
    Ok(Plan::single(file, report))
}
