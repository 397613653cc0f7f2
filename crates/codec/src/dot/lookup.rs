//! Rows of codes for parts of vectors: a product is a sum of entries of tables, one for each part.

/// What each code of a part stands for in the sum.
pub type Table = [f32; 256];

/// Rows that are summed up at the same time, so that one need not wait for the sum of the other.
const ROWS: usize = 4;

/// The sum of what the codes of each row stand for: a row has a code for each table. They are added
/// in the order of the parts.
///
/// # Panics
///
/// When there are no tables, or `codes` are not a row for each sum.
pub fn lookup_sums(codes: &[u8], tables: &[Table], sums: &mut [f32]) {
    let parts = tables.len();
    assert_eq!(Some(codes.len()), sums.len().checked_mul(parts), "a row for each sum");
    let (fours, rest) = sums.as_chunks_mut::<ROWS>();
    let (codes, codes_of_rest) = codes.split_at(fours.len() * ROWS * parts);
    for (sums, codes) in fours.iter_mut().zip(codes.chunks_exact(ROWS * parts)) {
        let (ab, cd) = codes.split_at(2 * parts);
        let ((a, b), (c, d)) = (ab.split_at(parts), cd.split_at(parts));
        *sums = [0.0; ROWS];
        for ((((table, a), b), c), d) in tables.iter().zip(a).zip(b).zip(c).zip(d) {
            for (sum, code) in sums.iter_mut().zip([a, b, c, d]) {
                *sum += table[usize::from(*code)];
            }
        }
    }
    for (sum, codes) in rest.iter_mut().zip(codes_of_rest.chunks_exact(parts)) {
        *sum = tables.iter().zip(codes).fold(0.0, |sum, (t, code)| sum + t[usize::from(*code)]);
    }
}
