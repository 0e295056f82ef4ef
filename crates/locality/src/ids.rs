//! Small dense numbers for the lines and pages that a program touches.
//!
//! Addresses are sparse; tables indexed by a number are fast. Lines get theirs by chunks of [`CHUNK_LINES`]: one
//! look-up a chunk, cached for the chunks touched last. Memory: 28 to 52 bytes a chunk (about 1 % of the memory
//! touched, with lines of 64 bytes and pages of 4096), whatever the addresses are and however long the run is.

/// Lines of a chunk.
pub const CHUNK_LINES: u32 = 64;
const CHUNK_SHIFT: u32 = CHUNK_LINES.ilog2();
/// Chunks whose number is found without the table.
const RECENT: usize = 256;
/// Most chunks that have numbers: lines are counted in 31 bits.
pub const MOST_CHUNKS: u32 = 1 << 25;

/// Open addressing with linear probing, from a number to the order of its first appearance.
#[derive(Debug, Clone)]
struct Numbers {
    /// Number + 1, 0 for an empty entry; at most half of the entries are in use.
    keys: Vec<u64>,
    values: Vec<u32>,
    count: u32,
}

impl Numbers {
    fn new() -> Numbers {
        Numbers { keys: vec![0; 64], values: vec![0; 64], count: 0 }
    }

    fn place(&self, key: u64) -> usize {
        let mask = self.keys.len() - 1;
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.keys[at] != 0 && self.keys[at] != key {
            at = (at + 1) & mask;
        }
        at
    }

    /// The number's order, and whether it is new.
    fn get(&mut self, number: u64) -> (u32, bool) {
        let key = number + 1;
        let at = self.place(key);
        if self.keys[at] == key {
            return (self.values[at], false);
        }
        let value = self.count;
        self.count += 1;
        self.keys[at] = key;
        self.values[at] = value;
        if self.count as usize * 2 > self.keys.len() {
            self.grow();
        }
        (value, true)
    }

    fn grow(&mut self) {
        let size = self.keys.len() * 2;
        let keys = std::mem::replace(&mut self.keys, vec![0; size]);
        let values = std::mem::replace(&mut self.values, vec![0; size]);
        for (key, value) in keys.into_iter().zip(values).filter(|(key, _)| *key != 0) {
            let at = self.place(key);
            self.keys[at] = key;
            self.values[at] = value;
        }
    }

    fn bytes(&self) -> u64 {
        self.keys.len() as u64 * 12
    }
}

/// Numbers of lines and pages.
#[derive(Debug, Clone)]
pub struct Ids {
    line_shift: u32,
    page_shift: u32,
    chunks: Numbers,
    pages: Numbers,
    /// Page of each chunk, if a page is a chunk or more.
    page_of: Vec<u32>,
    /// Chunk + 1 and its number, by the chunk's lowest bits.
    recent: Box<[(u64, u32); RECENT]>,
}

impl Ids {
    /// For lines and pages of this many bytes, both powers of two, the page at least a line.
    pub fn new(line_bytes: u64, page_bytes: u64) -> Ids {
        debug_assert!(
            line_bytes.is_power_of_two() && page_bytes.is_power_of_two() && page_bytes >= line_bytes
        );
        Ids {
            line_shift: line_bytes.trailing_zeros(),
            page_shift: page_bytes.trailing_zeros(),
            chunks: Numbers::new(),
            pages: Numbers::new(),
            page_of: Vec::new(),
            recent: Box::new([(0, 0); RECENT]),
        }
    }

    /// Number of the line whose address divided by the size of a line is `line`.
    #[inline(always)]
    pub fn line(&mut self, line: u64) -> u32 {
        let chunk = line >> CHUNK_SHIFT;
        self.chunk(chunk) * CHUNK_LINES + (line as u32 & (CHUNK_LINES - 1))
    }

    /// Number of the page that contains a line, from the line and its number.
    #[inline(always)]
    pub fn page(&self, line: u64, number: u32) -> u32 {
        let chunk = number / CHUNK_LINES;
        let chunk_shift = self.line_shift + CHUNK_SHIFT;
        if self.page_shift >= chunk_shift {
            return self.page_of[chunk as usize];
        }
        // Several pages a chunk.
        let within = (line as u32 & (CHUNK_LINES - 1)) >> (self.page_shift - self.line_shift);
        (chunk << (chunk_shift - self.page_shift)) + within
    }

    #[inline(always)]
    fn chunk(&mut self, chunk: u64) -> u32 {
        let (known, number) = self.recent[chunk as usize % RECENT];
        if known == chunk + 1 { number } else { self.look_up(chunk) }
    }

    #[inline(never)]
    fn look_up(&mut self, chunk: u64) -> u32 {
        let (number, new) = self.chunks.get(chunk);
        let chunk_shift = self.line_shift + CHUNK_SHIFT;
        if new && self.page_shift >= chunk_shift {
            let page = chunk >> (self.page_shift - chunk_shift);
            // If a page is a chunk both have the same numbers.
            let page = if self.page_shift == chunk_shift { number } else { self.pages.get(page).0 };
            self.page_of.push(page);
        }
        self.recent[chunk as usize % RECENT] = (chunk + 1, number);
        number
    }

    /// Chunks that have a number.
    #[inline(always)]
    pub fn chunks(&self) -> u32 {
        self.chunks.count
    }

    /// Memory of the tables, bytes.
    pub fn bytes(&self) -> u64 {
        self.chunks.bytes() + self.pages.bytes() + self.page_of.capacity() as u64 * 4 + RECENT as u64 * 16
    }

    /// Checks that the numbers are a bijection onto 0, 1, 2...
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), String> {
        for (name, numbers) in [("chunk", &self.chunks), ("page", &self.pages)] {
            let mut seen = vec![false; numbers.count as usize];
            for (at, &key) in numbers.keys.iter().enumerate().filter(|(_, key)| **key != 0) {
                if numbers.place(key) != at {
                    return Err(format!("{name} {:#x} is not found", key - 1));
                }
                match seen.get_mut(numbers.values[at] as usize) {
                    Some(seen) if !*seen => *seen = true,
                    _ => return Err(format!("{name} number {} is double or too large", numbers.values[at])),
                }
            }
            if seen.contains(&false) {
                return Err(format!("a {name} number is missing"));
            }
        }
        for &(key, number) in self.recent.iter().filter(|(key, _)| *key != 0) {
            let at = self.chunks.place(key);
            if self.chunks.keys[at] != key || self.chunks.values[at] != number {
                return Err(format!("chunk {:#x} is cached as {number}", key - 1));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// A stream over few and many chunks, near and far.
    fn lines() -> impl Iterator<Item = u64> {
        let mut state = 1_u64;
        (0..50_000).map(move |step| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            match step % 3 {
                0 => (state >> 40) & 0xfff,
                1 => (0x7fff_ffff_f000 >> 6) - ((state >> 50) & 0x3ff),
                _ => (state >> 20) & 0xff_ffff_ffff,
            }
        })
    }

    #[test]
    fn lines_and_pages_have_one_number_each() {
        for (line, page) in [(64, 4096), (64, 64), (64, 512), (16, 4096), (64, 1 << 21), (4096, 4096), (8, 8)]
        {
            let mut ids = Ids::new(line, page);
            let (mut of_line, mut of_page) = (HashMap::new(), HashMap::new());
            let (mut line_of, mut page_of) = (HashMap::new(), HashMap::new());
            for at in lines() {
                let number = ids.line(at);
                let page_at = at * line / page;
                let page_number = ids.page(at, number);
                assert_eq!(*of_line.entry(at).or_insert(number), number);
                assert_eq!(*line_of.entry(number).or_insert(at), at);
                assert_eq!(*of_page.entry(page_at).or_insert(page_number), page_number);
                assert_eq!(*page_of.entry(page_number).or_insert(page_at), page_at);
            }
            ids.check().unwrap();
            assert!(
                of_line.keys().count() > 10_000 && ids.bytes() < 104 * u64::from(ids.chunks()) + (1 << 16)
            );
        }
    }
}
