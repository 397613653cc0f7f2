//! What every file becomes, whatever its format was.

mod blockwise;
mod container;
mod encoding;
mod fit;
mod plan;
mod product;
mod records;
mod report;
mod rows;
mod shared;
mod subwords;
mod tensor;
mod value;
mod vocabulary;
mod words;

pub use blockwise::{Blockwise, RowPart, row_parts};
pub use container::{Attachment, Container, Dialect, Origin, RowShape};
pub use encoding::{Encoding, Scaled, Scaling};
pub use fit::{Holds, Keeps, Placement, fit, lose_precision, measure, place};
pub use plan::{FilePlan, Piece, Plan, Produce};
pub use product::Product;
pub use records::Records;
pub use report::{Changed, Loss, Report};
pub use rows::norm;
pub use shared::SharedData;
pub use subwords::{BadNgram, Ngrams, SubwordKind, Subwords};
pub use tensor::{Arrangement, BLOCK, Blocks, Data, RowSource, Target, Tensor};
pub use value::{Array, Value, scalar_json};
pub use vocabulary::{BadEntry, SPECIAL_TOKENS, Vocabulary};
pub(crate) use words::lose_others;
pub use words::{MATRIX, NORMS, WORD_TABLE, WordMatrix};
