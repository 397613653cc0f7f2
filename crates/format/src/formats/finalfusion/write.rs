//! Container to planned bytes.

use super::super::FormatInfo;
use super::super::wordlist::NO_WORDS;
use super::layout::{Chunk, MAGIC, padding};
use super::vocabulary::Words;
use super::{metadata, storage, vocabulary};
use crate::model::{
    Container, Encoding, NORMS, Note, NoteKind, Subject, SubwordKind, Tensor, UNIT_AND_NORMS,
};
use crate::plan::{Changed, FilePlan, Piece, Plan, Report, fit, lose_others, lose_precision};
use crate::source::View;
use crate::wire::{put_u32, put_u64};
use crate::{Advice, Error, Options};
use weighbridge_codec::DType;
use weighbridge_codec::convert::Change;

pub(super) fn plan(
    container: &Container,
    options: &Options,
    info: &FormatInfo,
) -> Result<Plan, Error> {
    let mut report = Report::default();
    let draft = options.get("dialect") == Some("draft");
    let embeddings = container.word_matrix()?;
    let words = Words {
        vocabulary: embeddings.words.clone().map(|w| w.into_owned()),
        subwords: embeddings.subwords.cloned(),
    };
    check_words(&words, draft)?;
    lose_others(container, &embeddings, &mut report);
    let toml = toml(container, draft, &mut report);
    let mut matrix = embeddings.matrix.clone();
    let mut norms = embeddings.norms.cloned();
    let (mut normalized, mut rounded) = (false, None);
    let quantized = |t: &Tensor| {
        let own = matches!(t.encoding, Encoding::Product(_));
        own || t.target.as_ref().is_some_and(|t| matches!(t.encoding, Encoding::Product(_)))
    };
    let codes = quantized(&matrix) && container.dtype.is_none();
    if draft && let Some(lengths) = norms.take() {
        if codes {
            report.lose(Subject::RowLengths, "the draft has no place for them");
        } else {
            lose_precision(&matrix, &mut report)?;
            matrix = matrix.scale_rows(&lengths)?;
        }
    } else if !draft && !codes && norms.is_none() && is_foreign(container) {
        // The peers take dot products for similarities: they need rows of unit length.
        lose_precision(&matrix, &mut report)?;
        let rows = embeddings.word_rows();
        if rows > 0 {
            let unit = matrix.unit_rows(rows)?;
            rounded = rounding(unit.change, rows.saturating_mul(matrix.shape[1]));
            norms = Some(stored_norms(&unit.norms));
            matrix = unit.matrix;
            normalized = true;
        }
    }

    // Words without rows have no norms; floret's files have a chunk of none.
    let none = norms.take_if(|n| n.count() == 0).is_some();
    let alone = reduced(container, &words, matrix, norms, &mut report)?;
    let placements = fit(&alone, &info.holds, &mut report)?;
    if normalized {
        let from = embeddings.matrix.encoding.name();
        report.kept = 0;
        report.changed = vec![Changed::new(&embeddings.matrix.name, from, UNIT_AND_NORMS)];
        report.warnings.extend(rounded);
    }
    let placed = placements.split_first().filter(|(first, _)| first.tensor == 0);
    let Some((first, rest)) = placed else {
        // What became of the matrix says more than what became of the norms.
        let matrix = Subject::Tensor(alone.tensors[0].name.clone());
        report.losses.retain(|l| l.subject == matrix);
        return Err(report.nothing_fits(info.id, ""));
    };
    let matrix = &alone.tensors[first.tensor];
    let mut file = Chunks { draft, chunks: Vec::new() };
    if let Some(text) = toml {
        file.bytes(Chunk::Metadata, text.into_bytes());
    }
    let (kind, bytes) = vocabulary::write(&words, draft)?;
    file.bytes(kind, bytes);
    let codes = Piece::tensor(matrix, &first.encoding, first.bytes);
    let rows = matrix.shape[0];
    if let Encoding::Product(product) = &first.encoding {
        let parts = [product.projection.as_ref(), Some(&product.values), product.norms.as_ref()];
        let parts = parts.into_iter().flatten().map(|view| Piece::View(view.clone()));
        let data = parts.chain([codes]).collect();
        file.data(Chunk::Quantized, storage::quantized_fields(rows, product), data);
    } else {
        let cols = u32::try_from(matrix.shape[1]);
        let cols = cols.map_err(|_| Error::refused("the rows are too long for finalfusion", ""))?;
        file.data(Chunk::Matrix, storage::matrix_fields(rows, cols), vec![codes]);
    }
    if let [norms] = rest {
        let piece = Piece::tensor(&alone.tensors[norms.tensor], &norms.encoding, norms.bytes);
        let count = alone.tensors[norms.tensor].count();
        file.data(Chunk::Norms, storage::norm_fields(count), vec![piece]);
    } else if none {
        file.data(Chunk::Norms, storage::norm_fields(0), Vec::new());
    }
    Ok(Plan::single(file.finish(), report))
}

/// The values come from a format that does not care for unit length.
fn is_foreign(container: &Container) -> bool {
    container.dialect_of("finalfusion").is_none()
}

fn check_words(words: &Words, draft: bool) -> Result<(), Error> {
    let floret = matches!(&words.subwords, Some(s) if matches!(s.kind, SubwordKind::Floret { .. }));
    if words.subwords.as_ref().is_some_and(|s| s.min_n == 0) {
        let what = "finalfusion has no vocabularies with n-grams of 0 characters";
        return Err(Error::refused(what, ""));
    }
    match &words.vocabulary {
        None if !floret => {
            return Err(Error::refused("the rows have no words", NO_WORDS));
        }
        Some(v) if v.is_empty() => {
            return Err(Error::refused("the vocabulary is empty", ""));
        }
        Some(_) if floret => {
            return Err(Error::refused("a floret vocabulary has no words of its own", ""));
        }
        Some(v) => {
            if let Some((again, first)) = v.duplicate() {
                let word = v.token(again).unwrap_or_default();
                let what = format!("word {again}, {word:?}, is the same as word {first}");
                return Err(Error::refused(what, "finalfusion has every word once"));
            }
        }
        None => {}
    }
    let known =
        words.subwords.as_ref().is_none_or(|s| matches!(s.kind, SubwordKind::Buckets { .. }));
    if draft && !known {
        let what = "the draft has simple and bucket vocabularies only";
        return Err(Error::refused(what, Advice::LeaveOut { option: "dialect" }));
    }
    Ok(())
}

/// The metadata's text.
fn toml(container: &Container, draft: bool, report: &mut Report) -> Option<String> {
    let dialect = container.dialect_of("finalfusion");
    let old = dialect.and_then(|d| d.get(metadata::DIALECT)?.as_str());
    if !draft {
        return metadata::write(old, &container.metadata, report);
    }
    if old.is_some() && container.metadata.is_empty() {
        report.lose(Subject::MetadataText, "the draft has no place for it");
    }
    for (key, _) in &container.metadata {
        report.lose(Subject::Metadata(key.clone()), "the draft has no place for it");
    }
    None
}

/// Says how many values of the words' rows change, where readers put the lengths back.
fn rounding(Change { changed, largest }: Change, of: u64) -> Option<Note> {
    let text = format!(
        "{changed} of {of} values change by {largest:.3e} at most when the rows get their lengths back"
    );
    (changed > 0).then(|| Note::new(NoteKind::Normalized, text).counting(changed, of))
}

fn stored_norms(norms: &[f32]) -> Tensor {
    let bytes = norms.iter().flat_map(|n| n.to_le_bytes()).collect();
    let (encoding, view) = (Encoding::Plain(DType::F32), View::owned(bytes));
    Tensor::unchecked(NORMS, encoding, vec![norms.len() as u64], view)
}

/// The container with what is left to be fitted: the matrix, the norms, and what has no place.
fn reduced(
    container: &Container,
    words: &Words,
    matrix: Tensor,
    norms: Option<Tensor>,
    report: &mut Report,
) -> Result<Container, Error> {
    let mut alone = container.clone();
    alone.metadata.clear();
    alone.tensors = [Some(matrix), norms].into_iter().flatten().collect();
    if let Some(vocabulary) = &words.vocabulary {
        vocabulary.lose_special(report);
        if container.vocabulary.is_none() {
            alone.drop_word_records()?;
        }
    }
    Ok(alone)
}

/// Chunks in order, put together once all are known.
struct Chunks {
    draft: bool,
    /// The fields of each, and the data behind the padding.
    chunks: Vec<(Chunk, Vec<u8>, Option<Vec<Piece>>)>,
}

impl Chunks {
    fn bytes(&mut self, chunk: Chunk, bytes: Vec<u8>) {
        self.chunks.push((chunk, bytes, None));
    }

    fn data(&mut self, chunk: Chunk, fields: Vec<u8>, data: Vec<Piece>) {
        self.chunks.push((chunk, fields, Some(data)));
    }

    fn finish(self) -> FilePlan {
        let mut header = MAGIC.to_vec();
        put_u32(&mut header, 0);
        put_u32(&mut header, u32::try_from(self.chunks.len()).unwrap_or(0));
        for (chunk, ..) in &self.chunks {
            put_u32(&mut header, chunk.number(self.draft));
        }
        let mut file = FilePlan::default();
        file.push(Piece::Bytes(header));
        for (chunk, fields, data) in self.chunks {
            let behind = file.size + 12 + fields.len() as u64;
            let pad = data.as_ref().map_or(0, |_| padding(behind, 4, self.draft));
            let data = data.unwrap_or_default();
            let length = fields.len() as u64 + pad + data.iter().map(Piece::len).sum::<u64>();
            let mut front = Vec::new();
            put_u32(&mut front, chunk.number(self.draft));
            put_u64(&mut front, length);
            front.extend(fields);
            file.push(Piece::Bytes(front));
            file.push(Piece::Zeros(pad));
            data.into_iter().for_each(|piece| file.push(piece));
        }
        file
    }
}
