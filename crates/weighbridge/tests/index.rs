//! Searching rows in files: what is found is what the definition says, whatever the format; and what
//! can't be asked is said.

mod common;

use common::format_of;
use std::path::{Path, PathBuf};
use weighbridge::index::{
    Asked, HitTable, RecallSettings, group_near, neighbours, parse_filter, recall,
    recall_of_written,
};
use weighbridge::model::Records;
use weighbridge::search::{Ask, Hit, Metric, Query, RowSet, score};
use weighbridge::{Container, Error, Index, Options, Output, Progress, open, samples};

const METRICS: [Metric; 3] = [Metric::Cosine, Metric::Dot, Metric::L2];

/// Numbers that look random, the same in each run.
fn floats(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as f32 / (1u64 << 30) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn unit_rows(seed: u64, rows: usize, dim: usize) -> Vec<f32> {
    let mut values = floats(seed, rows * dim);
    for row in values.chunks_exact_mut(dim) {
        let length = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        row.iter_mut().for_each(|v| *v /= length);
    }
    values
}

/// A matrix of unit rows with a record each.
fn container(rows: usize, dim: usize) -> Container {
    let mut container =
        Container::builder().rows(dim as u64, unit_rows(1, rows, dim)).build().unwrap();
    let objects: Vec<_> = (0..rows)
        .map(|i| format!("{{\"id\": {i}, \"kind\": \"{}\", \"tags\": [\"t{}\"]}}", i % 3, i % 5))
        .collect();
    container.records = Some(Records::from_objects(objects.iter().map(String::as_str)).unwrap());
    container
}

fn write(container: &Container, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let format = weighbridge::Formats::builtin().target(name, None).unwrap();
    let plan = format.plan(container, &Options::default()).unwrap().accept_losses(true);
    plan.write(Output::new(&path).overwrite(true), &mut Progress::none()).unwrap();
    path
}

/// All rows in order, by the definition over what the index says its rows are.
fn by_definition(index: &Index, query: &[f32], metric: Metric) -> Vec<(f64, usize)> {
    let scored = |row| (score(&index.row(row).unwrap(), query, metric), row);
    let mut all: Vec<_> = (0..index.len()).map(scored).filter(|(s, _)| !s.is_nan()).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    all
}

fn rows_of(hits: &[Hit]) -> Vec<usize> {
    hits.iter().map(|hit| hit.row).collect()
}

#[test]
fn every_format_of_rows_is_searched_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let made = container(300, 24);
    let half = weighbridge::Edit::new();
    let mut half = half;
    half.dtype = Some(weighbridge::codec::DType::F16);
    let mut files = vec![
        write(&made, &at.join("."), "rows.f32bin"),
        write(&made, at, "rows.npy"),
        write(&made, at, "rows.safetensors"),
        write(&half.apply(made.clone()).unwrap(), at, "half.safetensors"),
        write(&made, at, "rows.oinf"),
    ];
    std::fs::create_dir(at.join("codes")).unwrap();
    files.push(write(&made, &at.join("codes"), "rows.i8bin"));
    let query = floats(7, 24);
    for path in &files {
        let index = Index::open(path).unwrap();
        assert_eq!((index.len(), index.dim()), (300, 24), "{}", path.display());
        for metric in METRICS {
            let expected = by_definition(&index, &query, metric);
            for k in [1, 10, 300] {
                let hits = index.search(&query, &Ask::new(k, metric)).unwrap();
                let rows: Vec<_> = expected.iter().take(k).map(|(_, row)| *row).collect();
                assert_eq!(rows_of(&hits), rows, "{} {metric:?} {k}", path.display());
                assert_eq!(hits[0].score, expected[0].0 as f32);
            }
        }
    }
    assert_eq!(files.len(), 6);
}

#[test]
fn words_are_found_as_similar_finds_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&samples::word_embeddings(), folder.path(), "words.fifu");
    let index = Index::open(&path).unwrap();
    let words = weighbridge::Embeddings::open(&path).unwrap();
    for row in 0..words.len() {
        let word = words.word(row).into_owned();
        assert_eq!(index.word(row).as_deref(), Some(&*word));
        let question = index.word_question(&word).unwrap();
        let query = Query { vector: &question.vector, exclude: &question.exclude };
        let found = index.search_batch(&[query], &Ask::new(5, Metric::Cosine)).unwrap();
        assert_eq!(found[0], words.similar(&word, 5).unwrap(), "{word}");
    }
    // Lengths that the file keeps apart count where lengths count.
    let query = floats(3, 10);
    for metric in METRICS {
        let hits = index.search(&query, &Ask::new(20, metric)).unwrap();
        let expected = by_definition(&index, &query, metric);
        assert_eq!(rows_of(&hits), expected.iter().map(|e| e.1).collect::<Vec<_>>(), "{metric:?}");
    }
}

fn subject(error: Error) -> String {
    match error {
        Error::Refused(problem) => problem.subject.clone(),
        other => panic!("{other}"),
    }
}

#[test]
fn what_cant_be_asked_is_refused_by_name() {
    let index = Index::new(container(10, 4).tensors.remove(0)).unwrap();
    let ask =
        |query: &[f32], k, metric| subject(index.search(query, &Ask::new(k, metric)).unwrap_err());
    assert_eq!(ask(&[1.0; 5], 3, Metric::Dot), "dimension");
    assert_eq!(ask(&[0.0; 4], 3, Metric::Cosine), "query");
    assert_eq!(ask(&[1.0, f32::NAN, 0.0, 0.0], 3, Metric::L2), "query");
    assert_eq!(ask(&[1.0, f32::INFINITY, 0.0, 0.0], 3, Metric::Cosine), "query");
    assert_eq!(ask(&[1.0; 4], 0, Metric::Dot), "k");
    assert_eq!(ask(&[1.0; 4], 11, Metric::Dot), "k");
    assert!(index.search(&[0.0; 4], &Ask::new(10, Metric::Dot)).is_ok());
    let empty =
        Index::of(&Container::builder().rows(4, Vec::new()).build().unwrap(), None).unwrap();
    let error = empty.search(&[1.0; 4], &Ask::new(1, Metric::Dot)).unwrap_err();
    assert_eq!(subject(error), "index");
    // Records.
    assert_eq!(subject(index.matching(&[]).unwrap_err()), "records");
    let some = Records::from_objects(["{}"]).unwrap();
    let error = Index::of(&container(10, 4), None).unwrap().with_records(some).unwrap_err();
    assert_eq!(subject(error), "records");
    let index = Index::of(&container(10, 4), None).unwrap();
    let error = index.matching(&[parse_filter("colour=red").unwrap()]).unwrap_err();
    let text = error.to_string();
    assert_eq!(subject(error), "filter");
    assert!(text.contains("\"id\", \"kind\", \"tags\""), "{text}");
    // Which tensor.
    let matrix = |name: &str| {
        let mut tensor = container(4, 4).tensors.remove(0);
        tensor.name = name.to_owned();
        tensor
    };
    let several = Container { tensors: vec![matrix("a"), matrix("b")], ..Container::default() };
    assert_eq!(subject(Index::of(&several, None).unwrap_err()), "tensor");
    assert_eq!(Index::of(&several, Some("b")).unwrap().matrix().name, "b");
    assert!(matches!(Index::of(&several, Some("c")), Err(Error::NotFound(_))));
    // Models.
    let error = index.encoder(None).unwrap_err();
    assert_eq!(subject(error), "model");
}

#[test]
fn filters_choose_rows_by_their_records() {
    let index = Index::of(&container(30, 6), None).unwrap();
    let rows = |filters: &[&str]| -> Vec<usize> {
        let filters: Vec<_> = filters.iter().map(|f| parse_filter(f).unwrap()).collect();
        let set: RowSet = index.matching(&filters).unwrap();
        (0..30).filter(|row| set.contains(*row)).collect()
    };
    assert_eq!(rows(&["id=7"]), [7]);
    assert_eq!(rows(&["id=7.0"]), [7]);
    assert_eq!(rows(&["kind=1"]), (0..30).filter(|i| i % 3 == 1).collect::<Vec<_>>());
    assert_eq!(rows(&["kind=1", "tags=t2"]), [7, 22]);
    assert_eq!(rows(&["kind=9"]), [0usize; 0]);
    assert_eq!(index.rows_named("12").unwrap(), [12]);
    assert_eq!(index.rows_named("tags=t4").unwrap(), [4, 9, 14, 19, 24, 29]);
    for bad in ["30", "id=77", "nonsense"] {
        assert!(matches!(index.rows_named(bad), Err(Error::NotFound(_))), "{bad}");
    }
    let among = index.matching(&[parse_filter("kind=1").unwrap()]).unwrap();
    let query = floats(3, 6);
    let ask = Ask::new(30, Metric::Cosine).among(&among);
    let hits = index.search(&query, &ask).unwrap();
    let all = by_definition(&index, &query, Metric::Cosine);
    let expected: Vec<_> = all.iter().map(|(_, row)| *row).filter(|r| r % 3 == 1).collect();
    assert_eq!(rows_of(&hits), expected);
}

/// Computed here once more, from the rows alone.
#[test]
fn recall_is_what_one_computes_oneself() {
    let folder = tempfile::tempdir().unwrap();
    let made = container(400, 16);
    let exact = Index::of(&made, None).unwrap();
    let rounded = Index::open(write(&made, folder.path(), "rows.i8bin")).unwrap();
    let mut settings = RecallSettings::default();
    settings.k = 7;
    let found = recall(&exact, &rounded, None, &settings, &mut Progress::none()).unwrap();
    let (mut kept, mut largest) = (0, 0f64);
    for row in 0..400 {
        let query = exact.row(row).unwrap();
        let nearest = |index: &Index| -> Vec<usize> {
            let all = by_definition(index, &query, Metric::Cosine);
            all.iter().map(|(_, r)| *r).filter(|r| *r != row).take(7).collect()
        };
        let (a, b) = (nearest(&exact), nearest(&rounded));
        kept += a.iter().filter(|r| b.contains(r)).count();
        for r in a {
            let of = |index: &Index| score(&index.row(r).unwrap(), &query, Metric::Cosine);
            largest = largest.max((of(&exact) - of(&rounded)).abs());
        }
    }
    assert_eq!((found.k, found.queries), (7, 400));
    assert_eq!(found.recall, f64::from(kept as u32) / 2800.0);
    assert_eq!(found.max_score_error, largest);
    assert!(found.recall > 0.9 && found.recall < 1.0, "{found:?}");
    assert!(found.rank_correlation > 0.9 && found.rank_correlation < 1.0, "{found:?}");
    // With itself nothing is lost, and others can't be compared.
    let same = recall(&exact, &exact, Some(&rounded), &settings, &mut Progress::none()).unwrap();
    assert_eq!((same.recall, same.rank_correlation, same.max_score_error), (1.0, 1.0, 0.0));
    let other = Index::of(&container(399, 16), None).unwrap();
    assert!(recall(&exact, &other, None, &settings, &mut Progress::none()).is_err());
    let written = folder.path().join("rows.i8bin");
    let told = recall_of_written(&made, &written, &mut Progress::none()).unwrap().unwrap();
    assert_eq!((told.k, told.queries), (10, 200));
}

#[test]
fn rounded_rows_are_put_in_order_by_precise_ones() {
    let folder = tempfile::tempdir().unwrap();
    let made = container(300, 16);
    let exact = Index::of(&made, None).unwrap();
    let rounded = Index::open(write(&made, folder.path(), "rows.i8bin")).unwrap();
    let vector = floats(5, 16);
    let query = Query { vector: &vector, exclude: &[] };
    let ask = Ask::new(10, Metric::Cosine);
    let found = rounded.search_rescored(&exact, &[query], &ask).unwrap();
    assert_eq!(found[0], exact.search(&vector, &ask).unwrap());
    assert_ne!(found[0], rounded.search(&vector, &ask).unwrap());
}

#[test]
fn every_row_has_neighbours_and_groups_are_connected() {
    let dim = 8;
    let mut values = unit_rows(2, 200, dim);
    // 10, 11, 12 are a chain, 40 to 79 one large group; 100 is zero, 101 holds NaN.
    for (row, like) in [(11, 10), (12, 11)].into_iter().chain((41..80).map(|row| (row, 40))) {
        let (from, to) = (like * dim, row * dim);
        values.copy_within(from..from + dim, to);
        values[to + row % dim] += 0.01;
    }
    values[100 * dim..101 * dim].fill(0.0);
    values[101 * dim] = f32::NAN;
    let made = Container::builder().rows(dim as u64, values).build().unwrap();
    let index = Index::of(&made, None).unwrap();
    let mut seen = Vec::new();
    let mut take = |row: usize, hits: &[Hit]| {
        if row == 100 || row == 101 {
            assert_eq!(hits, []);
        } else {
            let all = by_definition(&index, &index.row(row).unwrap(), Metric::Cosine);
            let expected = all.iter().map(|(_, r)| *r).filter(|r| *r != row).take(4);
            assert_eq!(rows_of(hits), expected.collect::<Vec<_>>(), "{row}");
        }
        seen.push(row);
        Ok(())
    };
    neighbours(&index, 4, Metric::Cosine, &mut take, &mut Progress::none()).unwrap();
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
    let groups = group_near(&index, 0.999, Metric::Cosine, &mut Progress::none()).unwrap();
    assert_eq!(groups, [vec![10, 11, 12], (40..80).collect()]);
    assert!(index.not_finite_note().unwrap().to_string().contains("row 101"));
}

#[test]
fn hits_are_written_as_lines_and_as_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let index = std::sync::Arc::new(Index::of(&container(20, 4), None).unwrap());
    let mut table = HitTable::new(3);
    let query = floats(9, 4);
    let hits = index.search(&query, &Ask::new(3, Metric::Cosine)).unwrap();
    table.push(Asked::Row(0), &hits);
    table.push(Asked::Text("one \"text\"".to_owned()), &hits[..1]);
    let lines = table.clone().plan(&index, &["id".to_owned()], format_of("jsonl")).unwrap();
    let lines = String::from_utf8(lines.to_bytes().unwrap()).unwrap();
    let parsed: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(parsed.len(), 2);
    assert_eq!(parsed[0]["query"], 0);
    assert_eq!(parsed[0]["hits"][2]["row"], hits[2].row);
    assert_eq!(parsed[1]["query"], "one \"text\"");
    let [row, score] = [hits[0].row.to_string(), hits[0].score.to_string()];
    let first = format!("[{{\"row\":{row},\"score\":{score},\"record\":{{\"id\":{row}}}}}]");
    assert!(lines.ends_with(&format!("\"hits\":{first}}}\n")), "{lines}");
    let path = folder.path().join("found.safetensors");
    let plan = table.clone().plan(&index, &[], format_of("safetensors")).unwrap();
    plan.write(&path, &mut Progress::none()).unwrap();
    let found = open(&path).unwrap();
    let values = |name: &str| found.tensor(name).unwrap().values_f32(0, 6).unwrap();
    assert_eq!(found.tensor("rows").unwrap().shape, [2, 3]);
    assert_eq!(values("rows")[..4], [0, 1, 2, 0].map(|i| hits[i].row as f32));
    assert_eq!(values("rows")[4..], [-1.0, -1.0]);
    assert_eq!(values("scores")[0], hits[0].score);
    assert!(values("scores")[4].is_nan());
    assert!(table.plan(&index, &[], format_of("npy")).is_err());
}

/// A mapped file that is cut or replaced while it is open is said to be.
#[test]
fn a_file_that_changes_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&container(50, 8), folder.path(), "rows.npy");
    let index = Index::open(&path).unwrap();
    let ask = Ask::new(3, Metric::Cosine);
    assert!(index.search(&floats(1, 8), &ask).is_ok());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    assert!(matches!(index.search(&floats(1, 8), &ask), Err(Error::Changed { .. })));
    drop(index);
    std::fs::write(&path, &bytes).unwrap();
    let index = Index::open(&path).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_modified(later).unwrap();
    assert!(matches!(index.search(&floats(1, 8), &ask), Err(Error::Changed { .. })));
}
