//! The numbers are those of the peers: `subword_indices` of PyPI finalfusion 0.7.1, `getSubwords`
//! of PyPI fasttext-wheel 0.9.2, and for floret the crate finalfusion 0.18 with a model that PyPI
//! floret 0.10.5 trained.

use super::*;
use crate::source::Bytes;

fn rows(subwords: &Subwords, word: &str) -> Vec<u64> {
    let mut rows = Vec::new();
    subwords.for_each_row(word, &mut |row| rows.push(row));
    rows
}

fn buckets(min_n: u32, max_n: u32) -> Subwords {
    Subwords::new(min_n, max_n, SubwordKind::Buckets { exponent: 21 })
}

fn fasttext(min_n: u32, max_n: u32, buckets: u32) -> Subwords {
    Subwords::new(min_n, max_n, SubwordKind::FastText { buckets })
}

#[test]
fn finalfusion_buckets() {
    let expected: [u64; 18] = [
        1680294, 2065822, 1666166, 2026735, 1167494, 311961, 841219, 214157, 1693100, 1679745,
        741276, 1192256, 620206, 1489905, 1644730, 488897, 233912, 1532271,
    ];
    assert_eq!(rows(&buckets(3, 6), "Daniël"), expected);
    assert_eq!(rows(&buckets(3, 6), "東京"), [1715085, 1236476, 634766]);
    // The brackets alone count.
    assert_eq!(rows(&buckets(1, 2), "a"), [536746, 1922328, 1371000, 1014421, 577082]);
    assert_eq!(rows(&buckets(2, 3), "🙂é"), [9530, 1542902, 572848, 541603, 1606640]);
    assert_eq!(rows(&buckets(2, 3), ""), [421669]);
    assert_eq!(rows(&buckets(6, 6), "x"), [0; 0]);
    assert_eq!(rows(&buckets(4, 3), "word"), [0; 0]);
    assert_eq!(buckets(3, 6).rows(), 1 << 21);
}

#[test]
fn fasttext_buckets() {
    let expected: [u64; 18] = [
        1418443, 749365, 69886, 1493412, 573175, 441697, 804851, 1249224, 84537, 1105725, 1022467,
        504093, 1880616, 448390, 468430, 338340, 811506, 991985,
    ];
    let two_million = |min, max| fasttext(min, max, 2_000_000);
    assert_eq!(rows(&two_million(3, 6), "Daniël"), expected);
    assert_eq!(rows(&two_million(1, 2), "a"), [1008750, 1132539, 1614806, 2220, 687777]);
    assert_eq!(rows(&two_million(2, 3), "🙂é"), [742797, 342961, 943015, 528419, 1996781]);
    assert_eq!(rows(&fasttext(2, 3, 0), "word"), [0; 0]);
}

#[test]
fn fasttext_itself_leaves_the_brackets_out() {
    let model = fasttext(1, 3, 1000);
    let own = |word: &str| {
        let mut rows = Vec::new();
        model.for_each_fasttext_row(word, &mut |row| rows.push(row));
        rows
    };
    assert_eq!(own("a"), [750, 600, 220, 806]);
    assert_eq!(own("東京"), [997, 661, 463, 287, 715, 85, 713]);
    assert_eq!(own("</s>"), [0; 0]);
}

#[test]
fn floret_hashes() {
    let model = |bow: &str| {
        let (bow, eow) = (bow.to_owned(), ">".to_owned());
        let kind = SubwordKind::Floret { buckets: 1000, hashes: 3, seed: 2_166_136_261, bow, eow };
        Subwords::new(2, 4, kind)
    };
    // The whole word, then as an n-gram again. floret itself counts these rows behind its 13 words.
    let expected = [305, 722, 636, 305, 722, 636, 105, 384, 289, 281, 878, 36];
    let tokyo = [
        58, 392, 397, 58, 392, 397, 981, 914, 497, 119, 747, 11, 583, 728, 988, 777, 965, 314, 860,
        528, 504,
    ];
    assert_eq!(rows(&model("<"), "東京"), tokyo);
    assert_eq!(rows(&model("<"), "a"), expected);
    let mut firsts = Vec::new();
    model("<").for_each_ngram("a", &mut |text, row| firsts.push((text.to_owned(), row)));
    let texts: Vec<&str> = firsts.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(texts, ["<a>", "<a", "a>"]);
    assert_eq!(firsts[0].1, Some(expected[0]));
    assert_ne!(rows(&model("["), "a"), expected);
}

#[test]
fn explicit_ngrams() {
    let ngrams = Ngrams::from_pairs([("<a", 0), ("a>", 1), ("東京", 0), ("<b", 2)]);
    assert_eq!((ngrams.rows(), ngrams.is_dense(), ngrams.is_ordered()), (3, true, true));
    let (again, used) = Ngrams::parse(ngrams.entries(), 4).unwrap();
    assert_eq!(used, ngrams.entries().len());
    assert!(again.iter().eq(ngrams.iter()));
    assert_eq!(again.get("東京"), Some(0));
    assert_eq!(again.get("東"), None);
    assert_eq!(again.duplicate(), None);
    let subwords = Subwords::new(2, 2, SubwordKind::Explicit(Arc::new(again)));
    assert_eq!(rows(&subwords, "a"), [0, 1]);
    let mut found = Vec::new();
    subwords.for_each_ngram("bc", &mut |text, row| found.push((text.to_owned(), row)));
    assert_eq!(found[0], ("<b".to_owned(), Some(2)));
    assert_eq!(found[1], ("bc".to_owned(), None));
    assert_eq!(subwords.rows(), 3);
}

#[test]
fn order_of_explicit_indices() {
    let facts = |indices: &[u64]| {
        let texts: Vec<String> = (0..indices.len()).map(|i| i.to_string()).collect();
        let pairs = texts.iter().map(String::as_str).zip(indices.iter().copied());
        let n = Ngrams::from_pairs(pairs);
        (n.rows(), n.is_dense(), n.is_ordered())
    };
    assert_eq!(facts(&[]), (0, true, true));
    assert_eq!(facts(&[1, 0, 1]), (2, true, false));
    assert_eq!(facts(&[0, 2, 2]), (2, false, false));
    assert_eq!(facts(&[0, 0, u64::MAX]), (2, false, false));
    assert_eq!(facts(&[0, 2, 1]), (3, true, false));
}

#[test]
fn bad_ngrams_are_placed() {
    let whole = Ngrams::from_pairs([("ok", 0), ("é", 1), ("ok", 2)]);
    assert_eq!(whole.duplicate(), Some(2));
    assert_eq!(whole.get("ok"), Some(0));
    let bytes = whole.entries().to_vec();
    for cut in 0..bytes.len() {
        let view = Bytes::owned(bytes[..cut].to_vec());
        let bad = Ngrams::parse(&view, 3).unwrap_err();
        let ngram = cut / 14;
        assert_eq!(bad, BadNgram::CutShort { ngram, at: ngram * 14 });
    }
    let mut broken = bytes;
    broken[19] = b'x';
    let bad = Ngrams::parse(&Bytes::owned(broken), 3).unwrap_err();
    assert_eq!(bad, BadNgram::NotUtf8 { ngram: 1, at: 18 });
}

#[test]
fn impossible_subwords_are_named() {
    assert_eq!(buckets(3, 6).fault(), None);
    assert!(buckets(0, 6).fault().is_some());
    assert!(buckets(4, 3).fault().is_some());
    assert!(fasttext(3, 6, 0).fault().is_some());
    let with = |kind| Subwords::new(1, 2, kind);
    assert!(with(SubwordKind::Buckets { exponent: 64 }).fault().is_some());
    let gaps = Ngrams::from_pairs([("a", 0), ("b", 2)]);
    assert!(with(SubwordKind::Explicit(Arc::new(gaps))).fault().is_some());
}
