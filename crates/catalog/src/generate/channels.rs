//! Channels to be routed, as circuits of rows of cells have them: two rows of pins, most nets short and of two or three
//! pins, a few long ones of many.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;

/// `channels` channels of `width` columns, of whose pins `percent` are used.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channels {
    seed: u64,
    channels: NonZeroU32,
    width: NonZeroU32,
    percent: NonZeroU32,
}

/// Attempts to place a pin before it is dropped: near the end most places are taken.
const TRIES: u32 = 60;

/// One side's pins, by column: the number of the net, or 0.
type Side = Vec<u32>;

impl Channels {
    fn channel(&self, dice: &mut Dice) -> [Side; 2] {
        let width = u64::from(self.width.get());
        let mut sides = [vec![0; width as usize], vec![0; width as usize]];
        let wanted = 2 * width * u64::from(self.percent.get().min(100)) / 100;
        let (mut used, mut net, mut barren) = (0, 1, 0);
        // Two nets in a row without a place: the rest is too scattered.
        while used < wanted && barren < 2 {
            let pins = [2, 2, 2, 3, 3, 4, 6][dice.below(7) as usize];
            let reach = (width / [2, 4, 8, 8, 16][dice.below(5) as usize]).max(8);
            let centre = dice.below(width);
            let mut found = 0;
            for _ in 0..TRIES {
                let at = (centre + dice.below(reach + 1)).checked_sub(reach / 2);
                let side = &mut sides[dice.below(2) as usize];
                let place = at.and_then(|at| side.get_mut(usize::try_from(at).ok()?));
                if let Some(pin) = place.filter(|pin| **pin == 0) {
                    *pin = net;
                    found += 1;
                }
                if found == pins {
                    break;
                }
            }
            used += found;
            net += u32::from(found > 0);
            barren = if found > 0 { 0 } else { barren + 1 };
        }
        sides
    }
}

impl Generate for Channels {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        for _ in 0..self.channels.get() {
            writeln!(out, "channel {}", self.width)?;
            for (name, side) in ["top", "bottom"].iter().zip(self.channel(&mut dice)) {
                write!(out, "{name}")?;
                for pin in side {
                    write!(out, " {pin}")?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn as_many_pins_are_used_as_requested_and_nets_have_several() {
        let channels = Channels {
            seed: 3,
            channels: NonZeroU32::MIN,
            width: NonZeroU32::new(200).unwrap(),
            percent: NonZeroU32::new(80).unwrap(),
        };
        let sides = channels.channel(&mut Dice::new(3));
        let mut pins: BTreeMap<u32, u32> = BTreeMap::new();
        for pin in sides.iter().flatten().filter(|pin| **pin != 0) {
            *pins.entry(*pin).or_default() += 1;
        }
        let used: u32 = pins.values().sum();
        assert!((320..=326).contains(&used), "{used}");
        assert!(pins.keys().copied().eq(1..=pins.len() as u32), "numbers without a gap");
        let several = pins.values().filter(|&&count| count >= 2).count();
        assert!(several * 10 > pins.len() * 9, "{several} of {}", pins.len());
    }
}
