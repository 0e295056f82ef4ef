//! How many objects ended before 1, 10, 100... units: exactly, since powers of ten are no borders of an age histogram's
//! bins.

use heaptoll_callsites::Sum;

const DECADES: usize = 21;

/// Ages by decimal digits.
#[derive(Debug, Clone, Default)]
pub struct Decades {
    /// By the number of digits: 0 has none.
    ended: [Sum; DECADES],
}

impl Decades {
    /// An object of `bytes` bytes ended at this age.
    #[inline(always)]
    pub fn add(&mut self, age: u64, bytes: u64) {
        self.ended[digits(age)].add(bytes);
    }

    /// The objects that ended before an age that is a power of ten; none for other ages.
    pub fn younger_than(&self, age: u64) -> Option<Sum> {
        let digits = digits(age);
        let is_power = digits > 0 && POWERS[digits - 1] == age;
        is_power.then(|| self.ended[..digits].iter().fold(Sum::default(), |sum, part| sum.plus(*part)))
    }
}

const POWERS: [u64; 20] = {
    let mut powers = [1; 20];
    let mut index = 1;
    while index < 20 {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

/// Decimal digits; 0 has none.
#[inline(always)]
fn digits(age: u64) -> usize {
    // 1233/4096 is just above log10(2).
    let guess = (((64 - age.leading_zeros()) * 1233) >> 12) as usize;
    guess + usize::from(guess < POWERS.len() && age >= POWERS[guess])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_counted() {
        assert_eq!((digits(0), digits(u64::MAX)), (0, 20));
        for (index, &power) in POWERS.iter().enumerate() {
            assert_eq!((digits(power - 1), digits(power)), (index, index + 1), "{power}");
            assert_eq!(digits(power + power / 2), index + 1);
        }
    }

    #[test]
    fn shares_at_powers_of_ten_are_exact() {
        let mut decades = Decades::default();
        [0, 999_999, 1_000_000, 9_999_999].into_iter().for_each(|age| decades.add(age, 2));
        assert_eq!(decades.younger_than(1_000_000), Some(Sum { objects: 2, bytes: 4 }));
        assert_eq!(decades.younger_than(10_000_000), Some(Sum { objects: 4, bytes: 8 }));
        assert_eq!(decades.younger_than(1), Some(Sum { objects: 1, bytes: 2 }));
        assert_eq!(decades.younger_than(1024), None);
    }
}
