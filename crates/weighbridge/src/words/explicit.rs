//! From buckets to n-grams by name, and the rows that some words need.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use weighbridge_format::model::{
    Attachment, Ngrams, Note, NoteKind, Records, Subject, SubwordKind, Subwords, WordMatrix,
};
use weighbridge_format::source::Bytes;
use weighbridge_format::wire::to_len;
use weighbridge_format::{Advice, Container, Encoding, Error, Tensor, View, Vocabulary};

/// Gives every n-gram of the words a name and a row of its own number, so that buckets that no word
/// uses are left out. N-grams that shared a bucket share a row.
///
/// # Errors
/// [`Error::Refused`] if there are no n-grams of words, [`Error::Limit`] if they would take too much
/// memory.
pub fn to_explicit(container: &mut Container) -> Result<(), Error> {
    let found = container.word_matrix()?;
    match found.subwords.map(|s| &s.kind) {
        Some(SubwordKind::Buckets { .. } | SubwordKind::FastText { .. }) => {}
        Some(SubwordKind::Explicit(_)) => return Ok(()),
        Some(SubwordKind::Floret { .. }) => {
            let what = "floret has no words that n-grams could be taken from";
            return Err(Error::refused(what, Advice::LeaveOut { option: "explicit" }));
        }
        None => {
            let advice = Advice::LeaveOut { option: "explicit" };
            return Err(Error::refused("the file has no subwords", advice));
        }
    }
    let all = (0..found.word_rows()).collect();
    let buckets = found.subwords.map_or(0, Subwords::rows);
    let mut named = keep_words(container, &found, all)?;
    let rows = named.subwords.as_ref().map_or(0, Subwords::rows);
    let text = format!(
        "{rows} of {buckets} buckets have an n-gram of a word; n-grams of unknown words in the others are gone"
    );
    named.notes.push(Note::new(NoteKind::LeftOut, text).counting(rows, buckets));
    *container = named;
    Ok(())
}

/// The container with only these words, in this order, and the subword rows that they need. All else
/// stays, but for what only the format of the source needs.
pub(super) fn keep_words(
    container: &Container,
    found: &WordMatrix,
    mut rows: Vec<u64>,
) -> Result<Container, Error> {
    let words: Vec<String> = match &found.words {
        Some(words) => {
            let word = |row: &u64| words.token(to_len(*row)).unwrap_or_default().into_owned();
            rows.iter().map(word).collect()
        }
        None => Vec::new(),
    };
    let norms = found.norms.map(|norms| pick_values(norms, &rows)).transpose()?;
    let mut kept = container.clone();
    if let Some(subwords) = found.subwords {
        let (ngrams, used) = named_ngrams(subwords, &words)?;
        let behind = found.word_rows();
        rows.extend(used.into_iter().map(|row| behind + row));
        kept.subwords = (!ngrams.is_empty()).then(|| Subwords {
            kind: SubwordKind::Explicit(Arc::new(Ngrams::from_pairs(
                ngrams.iter().map(|(ngram, row)| (&**ngram, *row)),
            ))),
            ..subwords.clone()
        });
    }
    if let Some(old) = kept.vocabulary.take() {
        let mut vocabulary = Vocabulary::from_tokens(words.iter().map(String::as_str));
        // Special tokens have other numbers now.
        if !old.special.is_empty() {
            vocabulary.find_special();
        }
        if kept.text("vocab_size").is_some_and(|n| n == old.len().to_string()) {
            kept.set_text("vocab_size", words.len().to_string());
        }
        kept.vocabulary = Some(vocabulary);
    }
    if let Some(records) = found.words.as_ref().and(container.records.as_ref())
        && records.count()? == found.word_rows()
    {
        kept.records = pick_records(records, &rows[..words.len()])?;
    }
    change_files(&mut kept, &words)?;
    let others = container.tensors.iter().filter(|t| !container.is_private(&t.name));
    kept.tensors = others
        .map(|t| match (std::ptr::eq(t, found.matrix), &norms) {
            (true, _) => t.pick_rows(rows.clone()),
            (false, Some(picked)) if t.name == picked.name => Ok(picked.clone()),
            _ => Ok(t.clone()),
        })
        .collect::<Result<_, Error>>()?;
    Ok(kept)
}

/// Changes the files of a model that tell its words: the list and the number of them. A tokenizer
/// that knows more than a list is left out.
fn change_files(container: &mut Container, words: &[String]) -> Result<(), Error> {
    let is = |a: &Attachment, file: &str| a.name.rsplit('/').next() == Some(file);
    if container.attachments.iter().any(|a| is(a, "tokenizer.json")) {
        container.attachments.retain(|a| !is(a, "tokenizer.json"));
        let note =
            Note::new(NoteKind::LeftOut, "tokenizer.json is left out: it tells the old words");
        container.notes.push(note.about(Subject::File("tokenizer.json".to_owned())));
    }
    for list in container.attachments.iter_mut().filter(|a| is(a, "vocab.txt")) {
        let text: String = words.iter().map(|word| format!("{word}\n")).collect();
        list.data = View::owned(text.into_bytes());
    }
    for config in container.attachments.iter_mut().filter(|a| a.name == "config.json") {
        let parsed = serde_json::from_slice::<serde_json::Value>(&config.data.load()?);
        if let Ok(mut parsed) = parsed
            && let Some(size) = parsed.get_mut("vocab_size")
        {
            *size = words.len().into();
            let text = serde_json::to_string_pretty(&parsed).unwrap_or_default();
            config.data = View::owned(text.into_bytes());
        }
    }
    Ok(())
}

/// Memory that names of n-grams may take in any case.
const MOST_NGRAMS: usize = 256 << 20;

/// N-grams with their new rows, and the old rows.
type NamedNgrams = (Vec<(Arc<str>, u64)>, Vec<u64>);

/// The n-grams of words in order of their first appearance with their new rows, and the old rows.
fn named_ngrams(subwords: &Subwords, words: &[String]) -> Result<NamedNgrams, Error> {
    // Long n-grams of long words would take many times the memory of the words.
    let most = MOST_NGRAMS.max(64 * words.iter().map(String::len).sum::<usize>());
    let mut bytes = 0;
    let mut ngrams: NamedNgrams = Default::default();
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    let mut new_rows = HashMap::new();
    for word in words {
        let (list, used) = &mut ngrams;
        subwords.for_each_ngram(word, &mut |ngram, row| {
            let Some(row) = row.filter(|_| bytes <= most && !seen.contains(ngram)) else { return };
            let ngram: Arc<str> = ngram.into();
            bytes += ngram.len() + 64;
            seen.insert(ngram.clone());
            let new = *new_rows.entry(row).or_insert_with(|| {
                used.push(row);
                used.len() as u64 - 1
            });
            list.push((ngram, new));
        });
        if bytes > most {
            let what =
                format!("bytes of the n-grams of up to {} characters of the words", subwords.max_n);
            return Err(Error::limit(what, most as u64));
        }
    }
    Ok(ngrams)
}

/// Some of the records.
fn pick_records(records: &Records, rows: &[u64]) -> Result<Option<Records>, Error> {
    let items = records.items()?;
    let texts: Option<Vec<_>> = rows.iter().map(|i| items.get(to_len(*i)).copied()).collect();
    let Some(texts) = texts else { return Ok(None) };
    let document = format!("[{}]", texts.join(","));
    Ok(Records::parse(Bytes::owned(document.into_bytes())).ok())
}

/// Some values of a vector.
fn pick_values(vector: &Tensor, indices: &[u64]) -> Result<Tensor, Error> {
    let all = vector.values_f32(0, to_len(vector.count()))?;
    let value = |i: &u64| all.get(to_len(*i)).copied().unwrap_or(0.0);
    let bytes = indices.iter().flat_map(|i| value(i).to_le_bytes()).collect();
    let encoding = Encoding::Plain(weighbridge_codec::DType::F32);
    Tensor::stored(vector.name.clone(), encoding, vec![indices.len() as u64], View::owned(bytes))
}
