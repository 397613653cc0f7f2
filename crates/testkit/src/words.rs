//! Word embeddings with every kind of subwords, and product-quantized.

use crate::stored;
use std::sync::Arc;
use weighbridge_codec::DType;
use weighbridge_codec::product::Codebook;
use weighbridge_format::model::{Ngrams, Product, SubwordKind, Subwords};
use weighbridge_format::{Container, Encoding, Tensor, View, samples};

/// A container for every variant.
pub(crate) fn variants() -> Vec<(&'static str, Container)> {
    vec![
        ("buckets", buckets()),
        ("fasttext", with_subwords(SubwordKind::FastText { buckets: 5 })),
        ("explicit", explicit()),
        ("floret", floret()),
        ("product", product(false)),
        ("rotated product", product(true)),
    ]
}

pub(crate) fn buckets() -> Container {
    with_subwords(SubwordKind::Buckets { exponent: 3 })
}

fn with_subwords(kind: SubwordKind) -> Container {
    let mut container = samples::word_embeddings();
    let subwords = Subwords::new(3, 4, kind);
    let matrix = &mut container.tensors[0];
    let (words, dim) = (matrix.shape[0], matrix.shape[1]);
    let rows = words + subwords.rows();
    let mut values = matrix.values_f32(0, usize::try_from(words * dim).unwrap()).unwrap();
    values.extend((0..subwords.rows() * dim).map(|i| ((i * 37 % 101) as f32 - 50.0) / 60.0));
    *matrix = floats(&matrix.name, vec![rows, dim], &values);
    container.subwords = Some(subwords);
    container
}

/// N-grams by name; two of them share a row.
fn explicit() -> Container {
    let ngrams = [("<ma", 0), ("man", 1), ("an>", 2), ("<qu", 3), ("uee", 1), ("een>", 4)];
    with_subwords(SubwordKind::Explicit(Arc::new(Ngrams::from_pairs(ngrams))))
}

/// No words at all.
fn floret() -> Container {
    let (bow, eow) = ("<".to_owned(), ">".to_owned());
    let kind = SubwordKind::Floret { buckets: 9, hashes: 2, seed: 7, bow, eow };
    let mut container = with_subwords(kind);
    let matrix = &container.tensors[0];
    let words = matrix.shape[0] - 9;
    container.tensors = vec![matrix.pick_rows((words..words + 9).collect()).unwrap()];
    container.vocabulary = None;
    container
}

/// Rows as codes, with norms; with a rotation if asked for.
pub(crate) fn product(rotated: bool) -> Container {
    let mut container = samples::word_embeddings();
    let matrix = &container.tensors[0];
    let (rows, dim, parts, centroids) = (20, 10, 5, 6);
    let values = matrix.values_f32(0, rows * dim).unwrap();
    // Some rows' own parts are the centroids.
    let centroid = |part: usize, i: usize| &values[i * 3 * dim + part * 2..][..2];
    let book: Vec<f32> = (0..parts)
        .flat_map(|part| (0..centroids).flat_map(move |i| centroid(part, i).to_vec()))
        .collect();
    // Values change places.
    let turned: Vec<f32> =
        (0..dim * dim).map(|i| if (i / dim + 3) % dim == i % dim { 1.0 } else { 0.0 }).collect();
    let projection = rotated.then_some(turned);
    let codebook = Codebook::new(dim, parts, centroids, book.clone(), projection.clone());
    let mut codes = vec![0; rows * parts];
    codebook.expect("the sizes fit").encode(&values, &mut codes);
    let norms: Vec<f32> = (0..rows).map(|i| 0.5 + i as f32 / 10.0).collect();
    let sizes = [dim, parts, centroids].map(|n| n as u64);
    let norms = rotated.then(|| view(&norms));
    let product = Product::new(sizes, view(&book), projection.map(|p| view(&p)), norms);
    let encoding = Encoding::Product(Arc::new(product.expect("the sizes fit")));
    let shape = vec![rows as u64, dim as u64];
    container.tensors = vec![stored("embeddings", encoding, shape, View::owned(codes))];
    container
}

fn view(values: &[f32]) -> View {
    View::owned(values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

fn floats(name: &str, shape: Vec<u64>, values: &[f32]) -> Tensor {
    stored(name, Encoding::Plain(DType::F32), shape, view(values))
}
