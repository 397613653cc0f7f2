//! Bytes to container.

use super::super::Stop;
use super::super::wordlist::{Decode, LOSSY_HINT, lossy_note, put_word};
use super::layout::{
    Args, COUNTS, Layout, MAGIC, NO_OUTPUT, OUTPUT, OWN_ROWS, VERSION_KEY, VERSIONS, is_first,
};
use super::rows::Means;
use super::rules::*;
use crate::model::{Container, Data, Encoding, LastRow, MATRIX, SubwordKind, Subwords, Tensor};
use crate::source::{Bytes, View};
use crate::wire::{Budget, Cursor, Findings, Regions, Span, What};
use crate::{Error, Input, Options, Source, Vocabulary};
use std::collections::HashMap;
use weighbridge_codec::DType;

const HINT: &str = "fastText models of words (skipgram, cbow) are read, before they are quantized";

pub(super) fn read(input: &Input, options: &Options, _: &mut Findings) -> Result<Container, Stop> {
    let source = &input.source;
    let size = source.len();
    let mut c = Cursor::new(source, 0..size, CUT_SHORT);
    let layout = front(&mut c, source)?;
    let args = Args::read(&mut c)?;
    let arguments = layout.arguments()..c.position();
    check_args(&args, arguments.clone())?;
    let mut regions = Regions::default();
    regions.add(0..c.position(), What::Structure("arguments"));
    let start = c.position();
    let dictionary = Dictionary::read(&mut c, layout, Decode::new(options))?;
    regions.add(start..c.position(), What::Vocabulary);
    let start = c.position();
    not_quantized(&mut c, layout, "quantized")?;
    let words = dictionary.vocabulary.len() as u64;
    let notes = lossy_note(dictionary.not_utf8.len() as u64, words).into_iter().collect();
    let subwords = subwords(&args, arguments)?;
    let dim = u64::from(args.dim().cast_unsigned());
    let expected = words + subwords.as_ref().map_or(0, Subwords::rows);
    let (data, [rows, _]) = matrix(&mut c, "input matrix", Some(expected), dim)?;
    regions.add(start..data.start, What::Structure("input matrix header"));
    let middle = data.start + words * dim * 4;
    let start = c.position();
    // Some writers leave out the output matrix, which no vector needs: `verify` tells.
    let has_output = c.remaining() > 0;
    let (output, output_shape) = if has_output {
        not_quantized(&mut c, layout, "output quantized")?;
        matrix(&mut c, "output matrix", None, dim)?
    } else {
        (size..size, [0, dim])
    };
    if c.position() != size {
        return Err(TRAILING.appended(c.position(), size).into());
    }

    let f32s = |name: &str, shape: [u64; 2], span: &Span| {
        let view = view(source, span)?;
        Ok::<_, Stop>(Tensor::unchecked(name, Encoding::Plain(DType::F32), shape.to_vec(), view))
    };
    let mut tensors = vec![f32s(MATRIX, [rows, dim], &data)?];
    if let Some(subwords) = &subwords {
        let means = Means {
            rows: view(source, &data)?,
            words: dictionary.vocabulary.clone(),
            raw_words: dictionary.not_utf8,
            subwords: subwords.clone(),
        };
        check_work(&means, dim, size)?;
        tensors[0].data = Data::Rows(LastRow::of(means));
        regions.add(data.start..middle, What::Tensor(1));
        regions.add(middle..data.end, What::Tensor(0));
        tensors.push(f32s(OWN_ROWS, [words, dim], &(data.start..middle))?);
    } else {
        regions.add(data.clone(), What::Tensor(0));
    }
    let counts = View::owned(dictionary.counts);
    tensors.push(Tensor::unchecked(COUNTS, Encoding::Plain(DType::I64), vec![words], counts));
    if output_shape[0] > 0 {
        regions.add(output.clone(), What::Tensor(tensors.len()));
        tensors.push(f32s(OUTPUT, output_shape, &output)?);
    }
    regions.add(start..output.start, What::Structure("output matrix header"));
    regions.finish(size, 1);
    let mut dialect = args.to_dialect();
    dialect.insert("ntokens".to_owned(), dictionary.tokens.into());
    dialect.insert("pruneidx".to_owned(), dictionary.pruned.into());
    if !has_output {
        dialect.insert(NO_OUTPUT.to_owned(), true.into());
    }
    let kind = if subwords.is_some() { "with n-grams" } else { "without n-grams" };
    let version = match layout {
        Layout::Versioned(version) => {
            dialect.insert(VERSION_KEY.to_owned(), version.into());
            format!("version {version}")
        }
        Layout::First => "without a version".to_owned(),
    };
    Ok(Container {
        format: "fasttext",
        layout: format!("{version}, {kind}"),
        notes,
        dialect,
        size,
        tensors,
        vocabulary: Some(dictionary.vocabulary),
        subwords,
        regions,
        ..Container::default()
    })
}

/// The magic and the version, where there are such.
fn front<'a>(c: &mut Cursor<'a>, source: &'a Source) -> Result<Layout, Stop> {
    let magic = c.take(4, "magic")?.to_vec();
    if magic != MAGIC {
        if is_first(source.head()?, source.len()) {
            *c = Cursor::new(source, 0..source.len(), CUT_SHORT);
            return Ok(Layout::First);
        }
        let finding = MAGIC_MISSING.at(0..4).field("magic").expected(MAGIC.escape_ascii());
        return Err(finding
            .found(magic.escape_ascii())
            .hint("this is not a fastText model")
            .into());
    }
    let version = c.u32("version")?;
    if !VERSIONS.contains(&version) {
        let finding = VERSION_UNKNOWN.at(4..8).field("version");
        let [first, last] = VERSIONS;
        return Err(finding.expected(format!("{first} or {last}")).found(version).into());
    }
    Ok(Layout::Versioned(version))
}

/// Skips the byte that says whether a matrix is quantized, which it must not be.
fn not_quantized(c: &mut Cursor, layout: Layout, field: &str) -> Result<(), Stop> {
    let start = c.position();
    if layout != Layout::First && c.u8(field)? != 0 {
        let finding = QUANTIZED.at(start..start + 1).field(field);
        return Err(finding.expected(0).hint(HINT).into());
    }
    Ok(())
}

/// Long words have n-grams in the square of their lengths, and each has a row to be added.
fn check_work(means: &Means, dim: u64, size: u64) -> Result<(), Error> {
    // Far more than words of a language need, and a few seconds for a small file.
    let mut budget = Budget::new(size.saturating_mul(1024).max(4 << 30));
    for word in means.words.tokens() {
        let letters = word.len() as u64 + 2;
        let longest = letters.min(means.subwords.max_n.into());
        let each = dim.saturating_mul(4).saturating_add(longest + 64);
        let bytes = letters.saturating_mul(longest).saturating_mul(each);
        budget.spend(bytes, "bytes to be added up for the n-grams of words")?;
    }
    Ok(())
}

fn view(source: &Source, span: &Span) -> Result<View, Stop> {
    source.view(span.clone()).ok_or_else(|| CUT_SHORT.at(span.clone()).into())
}

fn check_args(args: &Args, span: Span) -> Result<(), Stop> {
    if args.is_floret() {
        return Err(Stop::from(FLORET_MODEL.at(span).field("arguments").hint(
            "save its vectors with floret's save_floret_vectors and read the .floret file",
        )));
    }
    if args.is_supervised() {
        return Err(Stop::from(SUPERVISED_MODEL.at(span).field("model").hint(HINT)));
    }
    let (bucket, min_n, max_n) = args.ngrams();
    let ngrams = max_n == 0 || (min_n <= max_n && max_n > 0 && min_n >= 0 && bucket > 0);
    if args.dim() <= 0 || !ngrams || bucket < 0 {
        let finding = ARGUMENTS.at(span).field("arguments");
        let found = format!("dim {}, bucket {bucket}, minn {min_n}, maxn {max_n}", args.dim());
        return Err(Stop::from(finding.found(found)));
    }
    Ok(())
}

/// How words are made of parts; none when only whole words were trained.
fn subwords(args: &Args, span: Span) -> Result<Option<Subwords>, Stop> {
    let (bucket, min_n, max_n) = args.ngrams();
    if max_n == 0 {
        return Ok(None);
    }
    let kind = SubwordKind::FastText { buckets: bucket.cast_unsigned() };
    // n-grams of no characters there are none.
    let (min_n, max_n) = (min_n.max(1).cast_unsigned(), max_n.cast_unsigned());
    let subwords = Subwords::new(min_n, max_n, kind);
    match subwords.fault() {
        None => Ok(Some(subwords)),
        Some(why) => Err(Stop::from(ARGUMENTS.at(span).field("arguments").found(why))),
    }
}

/// A matrix: its sizes, and where its values are.
fn matrix(
    c: &mut Cursor,
    name: &str,
    rows: Option<u64>,
    cols: u64,
) -> Result<(Span, [u64; 2]), Stop> {
    let start = c.position();
    let shape = [c.u64(name)?, c.u64(name)?];
    if rows.is_some_and(|rows| rows != shape[0]) || shape[1] != cols {
        let finding = SIZE.at(start..start + 16).field(name);
        let rows = rows.map_or("any".to_owned(), |rows| rows.to_string());
        return Err(finding
            .expected(format!("{rows} x {cols}"))
            .found(format!("{} x {}", shape[0], shape[1]))
            .into());
    }
    let bytes = shape[0].checked_mul(cols).and_then(|n| n.checked_mul(4));
    let bytes = bytes.ok_or_else(|| {
        let finding = SIZE.at(start..start + 16).field(name);
        finding.expected("fewer than 2^64 bytes").found(format!("{} x {cols}", shape[0]))
    })?;
    let data = c.position();
    c.skip(bytes, name)?;
    Ok((data..data + bytes, shape))
}

/// The words, and how often each was seen.
struct Dictionary {
    vocabulary: Vocabulary,
    counts: Vec<u8>,
    tokens: i64,
    pruned: i64,
    /// The bytes of words that are not UTF-8, by their rows.
    not_utf8: HashMap<u64, Vec<u8>>,
}

impl Dictionary {
    fn read(c: &mut Cursor, layout: Layout, decode: Decode) -> Result<Dictionary, Stop> {
        let start = c.position();
        let (size, words) = (c.u32("size")?, c.u32("nwords")?);
        let labels = c.u32("nlabels")?;
        let tokens = c.u64("ntokens")?.cast_signed();
        let pruned = match layout {
            Layout::Versioned(_) => c.u64("pruneidx")?.cast_signed(),
            Layout::First => -1,
        };
        let span = start..c.position();
        if labels != 0 {
            let finding = SUPERVISED_MODEL.at(span).field("nlabels").expected(0);
            return Err(finding.found(labels).hint(HINT).into());
        }
        if pruned > 0 {
            let finding = QUANTIZED.at(span).field("pruneidx").message("the dictionary is pruned");
            return Err(finding.expected("0 or -1").found(pruned).hint(HINT).into());
        }
        if size != words || size == 0 {
            let finding =
                COUNTS_DIFFER.at(span).field("nwords").expected("as many words as entries");
            return Err(finding.found(format!("{words} words, {size} entries")).into());
        }
        let (mut entries, mut counts) = (Vec::new(), Vec::new());
        let mut not_utf8 = HashMap::new();
        for i in 0..size {
            let at = c.position();
            let word = c.take_until(0, &format!("end of word {i}"))?;
            let text = decode.word(word).map_err(|bad| {
                let bad = at + bad.at as u64;
                let finding = TEXT.at(bad..bad + 1).field(format!("word {i}"));
                finding.expected("UTF-8 text").hint(LOSSY_HINT)
            })?;
            put_word(&mut entries, &text);
            if std::str::from_utf8(word).is_err() {
                not_utf8.insert(i.into(), word.to_vec());
            }
            counts.extend_from_slice(c.take(8, "word count")?);
            let kind = c.u8("entry type")?;
            if kind != 0 {
                let finding = SUPERVISED_MODEL.at(at..c.position()).field(format!("entry {i}"));
                return Err(finding.expected("a word").found("a label").hint(HINT).into());
            }
        }
        let count = counts.len() / 8;
        let (vocabulary, _) = Vocabulary::with_u32_lengths(&Bytes::owned(entries), count)
            .map_err(|_| TEXT.at(start..c.position()))?;
        Ok(Dictionary { vocabulary, counts, tokens, pruned, not_utf8 })
    }
}
