//! Bytes, whatever they mean.

use super::dice::Dice;

/// Bytes with one to four hits: cut, flipped, overwritten, repeated, swapped.
pub fn bytes(dice: &mut Dice, from: &[u8]) -> Vec<u8> {
    let mut bytes = from.to_vec();
    for _ in 0..=dice.below(4) {
        hit(dice, &mut bytes);
    }
    bytes
}

fn hit(dice: &mut Dice, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        bytes.push(dice.byte());
        return;
    }
    let (at, length) = dice.range(bytes.len(), 64);
    match dice.below(7) {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << dice.below(8),
        2 => bytes[at..at + length].iter_mut().for_each(|byte| *byte = dice.byte()),
        3 => bytes[at..at + length].fill([0, 0xFF, 0x7F, 0x80][dice.below(4)]),
        4 => drop(bytes.drain(at..at + length)),
        5 => {
            let copy = bytes[at..at + length].to_vec();
            let to = dice.below(bytes.len());
            bytes.splice(to..to, copy);
        }
        _ => {
            let other = dice.below(bytes.len());
            bytes.swap(at, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_does_the_same_and_another_mostly_not() {
        let file: Vec<u8> = (0..200).collect();
        let of = |seed| bytes(&mut Dice::new(seed), &file);
        assert_eq!(of(7), of(7));
        let distinct: std::collections::HashSet<Vec<u8>> = (0..100).map(of).collect();
        assert!(distinct.len() > 90, "{}", distinct.len());
        assert!(!bytes(&mut Dice::new(1), &[]).is_empty());
    }
}
