//! A JSON document: nested records with strings, numbers, lists and nulls.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// A list of `records` orders, each with a customer and some items.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Json {
    seed: u64,
    records: NonZeroU32,
}

impl Generate for Json {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let records = self.records.get();
        writeln!(out, "{{\"orders\": [")?;
        for id in 0..records {
            order(&mut dice, id, out)?;
            writeln!(out, "{}", if id + 1 < records { "," } else { "" })?;
        }
        writeln!(out, "], \"count\": {records}}}")
    }
}

fn order(dice: &mut Dice, id: u32, out: &mut dyn Write) -> io::Result<()> {
    let (customer, region) = (dice.zipf(3000), dice.below(12));
    write!(
        out,
        "{{\"id\": {id}, \"customer\": {{\"name\": \"{} {}\", \"region\": \"{}\", \"vip\": {}}}, \"note\": ",
        word(customer % 500),
        word(customer),
        word(region + 64),
        customer % 7 == 0,
    )?;
    if dice.one_in(3) {
        write!(out, "null")?;
    } else {
        write!(out, "\"{}\\n\\\"{}\\\" \\u00e9\"", word(dice.below(9000)), word(dice.below(9000)))?;
    }
    write!(out, ", \"items\": [")?;
    let items = dice.between(1, 6);
    for at in 0..items {
        let sku = dice.zipf(2000);
        write!(
            out,
            "{{\"sku\": \"{}-{sku}\", \"quantity\": {}, \"cents\": {}, \"tags\": [\"{}\", \"{}\"]}}{}",
            word(sku),
            dice.between(1, 9),
            dice.between(50, 99_999),
            word(dice.zipf(200)),
            word(dice.zipf(200)),
            if at + 1 < items { ", " } else { "" },
        )?;
    }
    write!(out, "]}}")
}
