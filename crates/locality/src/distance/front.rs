//! Moving numbers to the front of a short array, which contains the number or loses its last one.
//!
//! This is the inner loop of all simulators. The position of a number is as good as random, so a loop that stops there
//! mispredicts one branch nearly each time; with AVX2 the array is compared and shifted as a whole, without a branch.

/// An array that is aligned for whole loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Row<const LENGTH: usize>(pub [u32; LENGTH]);

/// A number that was not in a row, and the one that it displaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fallen {
    /// The number that was moved to the front.
    pub came: u32,
    /// The number that was last in the row.
    pub fell: u32,
}

/// How often numbers were at each position; the last counts those that were not in the row.
pub type Places<const COUNT: usize> = [u64; COUNT];

/// Moves a number to the front and returns its position before; the length if it was not in the row.
#[inline(always)]
pub fn to_front<const LENGTH: usize>(row: &mut Row<LENGTH>, number: u32) -> usize {
    let mut held = number;
    for (at, place) in row.0.iter_mut().enumerate() {
        let next = std::mem::replace(place, held);
        if next == number {
            return at;
        }
        held = next;
    }
    LENGTH
}

/// An implementation for many numbers, with instructions that this processor has.
pub trait Lanes: Copy {
    /// Moves numbers to the front of a row, one after the other, and counts their positions. Returns how many were not
    /// in the row; they are at the beginning of `fallen`, which is at least as long as the numbers.
    fn row(self, row: &mut Row<16>, numbers: &[u32], places: &mut Places<17>, fallen: &mut [Fallen])
    -> usize;

    /// Moves each number to the front of the set that the low bits of its line select, of a power of two of sets, and
    /// counts their positions. Keeps those that were not first, in order, at the beginning of lines and numbers, and
    /// returns their number.
    fn sets(
        self,
        sets: &mut [Row<8>],
        lines: &mut [u64],
        numbers: &mut [u32],
        places: &mut Places<9>,
    ) -> usize;
}

/// With instructions that every processor has.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

impl Lanes for Portable {
    fn row(
        self,
        row: &mut Row<16>,
        numbers: &[u32],
        places: &mut Places<17>,
        fallen: &mut [Fallen],
    ) -> usize {
        let mut missing = 0;
        for &number in numbers {
            let fell = row.0[15];
            let at = to_front(row, number);
            places[at] += 1;
            if at == 16 {
                fallen[missing] = Fallen { came: number, fell };
                missing += 1;
            }
        }
        missing
    }

    fn sets(
        self,
        sets: &mut [Row<8>],
        lines: &mut [u64],
        numbers: &mut [u32],
        places: &mut Places<9>,
    ) -> usize {
        let mask = sets.len() - 1;
        let mut kept = 0;
        for at in 0..lines.len().min(numbers.len()) {
            let (line, number) = (lines[at], numbers[at]);
            let place = to_front(&mut sets[line as usize & mask], number);
            places[place] += 1;
            if place != 0 {
                (lines[kept], numbers[kept]) = (line, number);
                kept += 1;
            }
        }
        kept
    }
}

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_blend_epi32, _mm256_blendv_epi8, _mm256_castsi256_ps,
        _mm256_cmpeq_epi32, _mm256_extract_epi32, _mm256_load_si256, _mm256_movemask_ps,
        _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_setr_epi32, _mm256_store_si256,
    };

    use super::{Fallen, Lanes, Places, Row};

    /// With AVX2, BMI1 and POPCNT. A value exists only on processors that have them.
    #[derive(Debug, Clone, Copy)]
    pub struct Avx2(());

    impl Avx2 {
        /// A value if this processor has them.
        pub fn find() -> Option<Avx2> {
            let has = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("popcnt");
            has.then_some(Avx2(()))
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn rotate(numbers: __m256i) -> __m256i {
        _mm256_permutevar8x32_epi32(numbers, _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6))
    }

    /// All ones in the lanes whose bits are set in the lowest 8 bits of a mask.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn lanes(mask: u32) -> __m256i {
        let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(mask as i32), bits), bits)
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn equal(numbers: __m256i, wanted: __m256i) -> u32 {
        _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(numbers, wanted))) as u32
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn row(row: &mut Row<16>, numbers: &[u32], places: &mut Places<17>, fallen: &mut [Fallen]) -> usize {
        let fallen = &mut fallen[..numbers.len()];
        let vectors = (&raw mut *row).cast::<__m256i>();
        // SAFETY: `vectors` points to `row`; a row of 16 has the size of two vectors and the alignment of one.
        let (mut low, mut high) = unsafe { (_mm256_load_si256(vectors), _mm256_load_si256(vectors.add(1))) };
        let mut missing = 0;
        for &number in numbers {
            let wanted = _mm256_set1_epi32(number as i32);
            // Bit 16 represents a number that is not in the row.
            let found = equal(low, wanted) | equal(high, wanted) << 8 | 1 << 16;
            let at = found.trailing_zeros() as usize;
            places[at] += 1;
            fallen[missing] = Fallen { came: number, fell: _mm256_extract_epi32::<7>(high) as u32 };
            missing += at >> 4;
            // Up to its position, each number moves by one.
            let moving = found ^ (found - 1);
            let turned = rotate(low);
            low = _mm256_blendv_epi8(low, _mm256_blend_epi32::<1>(turned, wanted), lanes(moving));
            let turned = _mm256_blend_epi32::<1>(rotate(high), turned);
            high = _mm256_blendv_epi8(high, turned, lanes(moving >> 8));
        }
        // SAFETY: `vectors` points to `row`; a row of 16 has the size of two vectors and the alignment of one.
        unsafe {
            _mm256_store_si256(vectors, low);
            _mm256_store_si256(vectors.add(1), high);
        }
        missing
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    fn sets(sets: &mut [Row<8>], lines: &mut [u64], numbers: &mut [u32], places: &mut Places<9>) -> usize {
        let mask = sets.len() - 1;
        let count = lines.len();
        let numbers = &mut numbers[..count];
        let mut kept = 0;
        for at in 0..count {
            let (line, number) = (lines[at], numbers[at]);
            let vector = (&raw mut sets[line as usize & mask]).cast::<__m256i>();
            // SAFETY: `vector` points to a row of `sets`; a row of 8 has the size and the alignment of a vector.
            let old = unsafe { _mm256_load_si256(vector) };
            let wanted = _mm256_set1_epi32(number as i32);
            let found = equal(old, wanted) | 1 << 8;
            let shifted = _mm256_blend_epi32::<1>(rotate(old), wanted);
            let new = _mm256_blendv_epi8(old, shifted, lanes(found ^ (found - 1)));
            // SAFETY: `vector` points to a row of `sets`; a row of 8 has the size and the alignment of a vector.
            unsafe { _mm256_store_si256(vector, new) };
            places[found.trailing_zeros() as usize] += 1;
            (lines[kept], numbers[kept]) = (line, number);
            kept += (found & 1 == 0) as usize;
        }
        kept
    }

    impl Lanes for Avx2 {
        #[inline(always)]
        fn row(
            self,
            row_of: &mut Row<16>,
            numbers: &[u32],
            places: &mut Places<17>,
            fallen: &mut [Fallen],
        ) -> usize {
            // SAFETY: `self` proves that the processor has the instructions: `Avx2::find` checked them.
            unsafe { row(row_of, numbers, places, fallen) }
        }

        #[inline(always)]
        fn sets(
            self,
            sets_of: &mut [Row<8>],
            lines: &mut [u64],
            numbers: &mut [u32],
            places: &mut Places<9>,
        ) -> usize {
            // SAFETY: `self` proves that the processor has the instructions: `Avx2::find` checked them.
            unsafe { sets(sets_of, lines, numbers, places) }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm_extract_epi32, _mm256_alignr_epi32, _mm256_cmpeq_epi32_mask, _mm256_load_si256,
        _mm256_mask_mov_epi32, _mm256_set1_epi32, _mm256_store_si256, _mm512_alignr_epi32,
        _mm512_cmpeq_epi32_mask, _mm512_extracti32x4_epi32, _mm512_loadu_si512, _mm512_mask_mov_epi32,
        _mm512_set1_epi32, _mm512_storeu_si512,
    };

    use super::{Fallen, Lanes, Places, Row};

    /// With AVX-512 (F and VL), BMI1 and POPCNT. A value exists only on processors that have them.
    #[derive(Debug, Clone, Copy)]
    pub struct Avx512(());

    impl Avx512 {
        /// A value if this processor has them.
        pub fn find() -> Option<Avx512> {
            let has = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("popcnt");
            has.then_some(Avx512(()))
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,bmi1,popcnt")]
    fn row(row: &mut Row<16>, numbers: &[u32], places: &mut Places<17>, fallen: &mut [Fallen]) -> usize {
        let fallen = &mut fallen[..numbers.len()];
        let vectors = (&raw mut *row).cast::<__m512i>();
        // SAFETY: `vectors` points to `row`; a row of 16 has the size of a vector, and the load needs no alignment.
        let mut old = unsafe { _mm512_loadu_si512(vectors) };
        let mut missing = 0;
        for &number in numbers {
            let wanted = _mm512_set1_epi32(number as i32);
            let found = _mm512_cmpeq_epi32_mask(old, wanted);
            // Bit 16 represents a number that is not in the row.
            let at = (u32::from(found) | 1 << 16).trailing_zeros() as usize;
            places[at] += 1;
            let fell = _mm_extract_epi32::<3>(_mm512_extracti32x4_epi32::<3>(old)) as u32;
            fallen[missing] = Fallen { came: number, fell };
            missing += at >> 4;
            // Up to its position, or all of them, each number moves by one.
            let moving = found ^ found.wrapping_sub(1);
            old = _mm512_mask_mov_epi32(old, moving, _mm512_alignr_epi32::<15>(old, wanted));
        }
        // SAFETY: `vectors` points to `row`; a row of 16 has the size of a vector, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(vectors, old) };
        missing
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,bmi1,popcnt")]
    fn sets(sets: &mut [Row<8>], lines: &mut [u64], numbers: &mut [u32], places: &mut Places<9>) -> usize {
        let mask = sets.len() - 1;
        let count = lines.len();
        let numbers = &mut numbers[..count];
        let mut kept = 0;
        for at in 0..count {
            let (line, number) = (lines[at], numbers[at]);
            let vector = (&raw mut sets[line as usize & mask]).cast::<__m256i>();
            // SAFETY: `vector` points to a row of `sets`; a row of 8 has the size and the alignment of a vector.
            let old = unsafe { _mm256_load_si256(vector) };
            let wanted = _mm256_set1_epi32(number as i32);
            let found = _mm256_cmpeq_epi32_mask(old, wanted);
            let moving = found ^ found.wrapping_sub(1);
            let new = _mm256_mask_mov_epi32(old, moving, _mm256_alignr_epi32::<7>(old, wanted));
            // SAFETY: `vector` points to a row of `sets`; a row of 8 has the size and the alignment of a vector.
            unsafe { _mm256_store_si256(vector, new) };
            places[(u32::from(found) | 1 << 8).trailing_zeros() as usize] += 1;
            (lines[kept], numbers[kept]) = (line, number);
            kept += (found & 1 == 0) as usize;
        }
        kept
    }

    impl Lanes for Avx512 {
        #[inline(always)]
        fn row(
            self,
            row_of: &mut Row<16>,
            numbers: &[u32],
            places: &mut Places<17>,
            fallen: &mut [Fallen],
        ) -> usize {
            // SAFETY: `self` proves that the processor has the instructions: `Avx512::find` checked them.
            unsafe { row(row_of, numbers, places, fallen) }
        }

        #[inline(always)]
        fn sets(
            self,
            sets_of: &mut [Row<8>],
            lines: &mut [u64],
            numbers: &mut [u32],
            places: &mut Places<9>,
        ) -> usize {
            // SAFETY: `self` proves that the processor has the instructions: `Avx512::find` checked them.
            unsafe { sets(sets_of, lines, numbers, places) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(numbers: &mut Vec<u32>, number: u32) -> usize {
        let length = numbers.len();
        let at = numbers.iter().position(|&other| other == number).unwrap_or(length);
        numbers.insert(0, number);
        numbers.remove(if at == length { length } else { at + 1 });
        at
    }

    fn row_agrees(lanes: impl Lanes, stream: &[u32]) {
        let mut row = Row([u32::MAX; 16]);
        let mut list = vec![u32::MAX; 16];
        for part in stream.chunks(37) {
            let mut places = [0; 17];
            let mut fallen = [Fallen::default(); 37];
            let missing = lanes.row(&mut row, part, &mut places, &mut fallen);
            let (mut naive_places, mut naive_fallen) = ([0; 17], Vec::new());
            for &number in part {
                let fell = list[15];
                let at = naive(&mut list, number);
                naive_places[at] += 1;
                if at == 16 {
                    naive_fallen.push(Fallen { came: number, fell });
                }
            }
            assert_eq!((&row.0[..], places), (&list[..], naive_places));
            assert_eq!(&fallen[..missing], &naive_fallen);
        }
    }

    fn sets_agree(lanes: impl Lanes, stream: &[u32]) {
        let mut sets = [Row([u32::MAX; 8]); 4];
        let mut lists = vec![vec![u32::MAX; 8]; 4];
        for part in stream.chunks(37) {
            let (mut lines, mut numbers) =
                (part.iter().map(|&n| u64::from(n)).collect::<Vec<_>>(), part.to_vec());
            let mut places = [0; 9];
            let kept = lanes.sets(&mut sets, &mut lines, &mut numbers, &mut places);
            let (mut naive_places, mut naive_kept) = ([0; 9], Vec::new());
            for &number in part {
                let at = naive(&mut lists[number as usize % 4], number);
                naive_places[at] += 1;
                if at > 0 {
                    naive_kept.push(number);
                }
            }
            assert_eq!((places, &numbers[..kept]), (naive_places, &naive_kept[..]));
            assert!(lines.iter().zip(&numbers).take(kept).all(|(&line, &number)| line == u64::from(number)));
            assert!(sets.iter().zip(&lists).all(|(set, list)| set.0[..] == list[..]));
        }
    }

    proptest! {
        #[test]
        fn numbers_move_as_in_a_list(stream in prop::collection::vec(0_u32..24, 1..300), spread in 1_u32..40) {
            let wide: Vec<u32> = stream.iter().map(|number| number * spread % 67).collect();
            row_agrees(Portable, &stream);
            sets_agree(Portable, &wide);
            #[cfg(target_arch = "x86_64")]
            if let Some(avx2) = Avx2::find() {
                row_agrees(avx2, &stream);
                sets_agree(avx2, &wide);
            }
            #[cfg(target_arch = "x86_64")]
            if let Some(avx512) = Avx512::find() {
                row_agrees(avx512, &stream);
                sets_agree(avx512, &wide);
            }
        }
    }
}
