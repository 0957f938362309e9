//! Deterministic random numbers: the same seed gives the same requests.

/// Random number generator.
#[derive(Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// `SplitMix64`.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        let at = self.below(from.len());
        from[at]
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// Changes, removes, repeats, inserts or truncates a few bytes.
    pub(crate) fn disturb(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(6) {
            if bytes.is_empty() {
                return;
            }
            let at = self.below(bytes.len());
            match self.below(6) {
                0 => bytes[at] = self.byte(),
                1 => bytes[at] ^= 1 << self.below(8),
                2 => {
                    bytes.remove(at);
                }
                3 => {
                    let to = bytes.len().min(at + self.below(40));
                    let piece = bytes[at..to].to_vec();
                    bytes.splice(at..at, piece);
                }
                4 => bytes.truncate(at),
                _ => {
                    let token = self.pick::<[u8]>(&[
                        b"null",
                        b"-0",
                        b"1e999",
                        b"[]",
                        b"{}",
                        b"\"\"",
                        b"\\u0000",
                        b"\\ud800",
                        b"\xff",
                        b"18446744073709551616",
                        b"true",
                    ]);
                    bytes.splice(at..at, token.iter().copied());
                }
            }
        }
    }
}
