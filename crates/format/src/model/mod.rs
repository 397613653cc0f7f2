//! What every file becomes, whatever its format was.

mod block_coded;
mod builder;
mod container;
mod damage;
mod dialect;
mod encoding;
mod note;
mod produce;
mod product;
mod records;
mod rows;
mod subwords;
mod tensor;
mod value;
mod values;
mod vocabulary;
mod words;

pub use block_coded::{BlockCoded, RowPart, row_parts, whole_cuts};
pub use builder::ContainerBuilder;
pub use container::{Attachment, Container, NO_FORMAT, Origin, RowShape};
pub use damage::DamageCheck;
pub use dialect::Dialect;
pub use encoding::{Encoding, Scaled, Scaling};
pub use note::{Note, NoteKind, Subject};
pub use produce::Produce;
pub use product::Product;
pub use records::{BadRecords, Records};
pub use rows::{UNIT_AND_NORMS, norm};
pub use subwords::{BadNgram, Ngrams, SubwordKind, SubwordVectors, Subwords};
pub use tensor::{Arrangement, Data, RowSource, Target, Tensor};
pub(crate) use value::quoted;
pub use value::{Array, Value};
pub use values::{BLOCK, Blocks};
pub use vocabulary::{BadEntry, SPECIAL_TOKENS, Vocabulary};
pub use words::{MATRIX, NORMS, WORD_TABLE, WordMatrix};
