//! Variants of an EMBD file that no single damaged place gives.

/// Inserts bytes in front of the data section and moves its offset, all checksums right.
pub fn embd_with_shifted_data(bytes: &[u8], by: u8, aligned_offset: bool) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let data = word(36) as usize;
    let end = bytes.len() - 16;
    let mut out = bytes[..data].to_vec();
    out.extend(vec![0; by.into()]);
    out.extend_from_slice(&bytes[data..end]);
    let offset = if aligned_offset { data } else { data + usize::from(by) };
    out[36..40].copy_from_slice(&(offset as u32).to_le_bytes());
    let size = out.len() - offset;
    out[40..48].copy_from_slice(&(size as u64).to_le_bytes());
    let total = out.len() as u64 + 16;
    out[48..56].copy_from_slice(&total.to_le_bytes());
    let header = crc32fast::hash(&out[..56]);
    out[56..60].copy_from_slice(&header.to_le_bytes());
    let (data_sum, file_sum) = (crc32fast::hash(&out[offset..]), crc32fast::hash(&out));
    out.extend_from_slice(&data_sum.to_le_bytes());
    out.extend_from_slice(&file_sum.to_le_bytes());
    out.extend_from_slice(b"DBME\0\0\0\0");
    out
}
