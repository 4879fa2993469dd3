//! How targets cut their input: a peer's bytes come in pieces of any length.

/// Cuts `bytes` by the random numbers that follow from `seed`: mostly small pieces, empty ones among them.
pub fn cut(bytes: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut state = seed | 1;
    let mut rest = bytes;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        // Xorshift (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let most = 1_u64 << (state >> 60);
        let (piece, after) = rest.split_at(((state >> 8) % (most + 1)).min(rest.len() as u64) as usize);
        pieces.push(piece);
        rest = after;
    }
    pieces
}
