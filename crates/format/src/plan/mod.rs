//! From a container to the bytes of a format: what fits, what is lost, and every byte in order.

mod append;
mod companion;
mod fit;
mod growth;
mod narrow;
mod pieces;
mod report;
mod restated;
mod shared;
mod stream;
mod text;

pub use append::{EncodeRows, RowBlock, RowFigures, RowLayout};
pub use companion::Companion;
pub use fit::{Holds, Keeps, Placement, fit, lose_precision, measure, place};
pub(crate) use growth::check_growth;
pub(crate) use narrow::lose_others;
pub use pieces::{FilePlan, Piece, Plan};
pub use report::{Changed, Loss, LossKind, Report, Rounding};
pub use shared::SharedData;
pub use text::Text;
