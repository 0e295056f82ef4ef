//! An SQL script: a small shop's tables filled row by row, indexed, changed and queried.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `orders` orders of `customers` customers, then `rounds` rounds of changes and queries.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sql {
    seed: u64,
    customers: NonZeroU32,
    orders: NonZeroU32,
    rounds: NonZeroU32,
}

impl Generate for Sql {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let customers = u64::from(self.customers.get());
        writeln!(out, "create table customer(id integer primary key, name text, town text);")?;
        writeln!(
            out,
            "create table item(id integer primary key, customer integer, sku text, cents integer);"
        )?;
        writeln!(
            out,
            "create index item_customer on item(customer);\ncreate index item_sku on item(sku);\nbegin;"
        )?;
        for id in 0..customers {
            let town = word(dice.zipf(400));
            writeln!(out, "insert into customer values({id}, '{} {}', '{town}');", word(id % 700), word(id))?;
        }
        for id in 0..self.orders.get() {
            let (customer, sku, cents) = (dice.zipf(customers), dice.zipf(5000), dice.between(50, 99_999));
            writeln!(out, "insert into item values({id}, {customer}, '{}-{sku}', {cents});", word(sku))?;
        }
        writeln!(out, "commit;")?;
        for _ in 0..self.rounds.get() {
            round(&mut dice, customers, out)?;
        }
        writeln!(out, "select count(*), sum(cents), count(distinct sku) from item;")
    }
}

fn round(dice: &mut Dice, customers: u64, out: &mut dyn Write) -> io::Result<()> {
    let town = word(dice.zipf(100));
    writeln!(
        out,
        "select count(*), sum(cents) from item join customer on customer.id = customer where town = '{town}';"
    )?;
    writeln!(
        out,
        "select length(group_concat(note, ';')) from (select upper(name) || ':' || sum(cents) || ':' || \
         replace(group_concat(sku, ','), '-', '/') as note from customer join item on customer.id = customer \
         where customer.id between {0} and {0} + 40 group by name, town order by note);",
        dice.below(customers)
    )?;
    writeln!(
        out,
        "with recursive walk(n, path) as (values(1, 'x') union all select n + 1, path || '-' || n from walk \
         where n < {}) select max(length(path)) from walk;",
        dice.between(50, 90)
    )?;
    let (low, cents) = (dice.below(customers), dice.below(500));
    writeln!(out, "update item set cents = cents + {cents}, sku = sku || '' where customer = {low};")?;
    writeln!(out, "delete from item where id % 997 = {};", dice.below(997))
}
