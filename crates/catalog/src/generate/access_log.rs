//! A web server's access log in the combined format: what text tools are fed with in practice.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `lines` requests of `clients` addresses for `pages` paths, in order of time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessLog {
    seed: u64,
    lines: NonZeroU32,
    clients: NonZeroU32,
    pages: NonZeroU32,
}

const AGENTS: [&str; 6] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/120.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/17.0 Safari/605.1.15",
    "curl/8.5.0",
    "Wget/1.21.4",
    "ExampleBot/2.1 (+http://bot.example/about)",
];

impl Generate for AccessLog {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let mut second = 0;
        for _ in 0..self.lines.get() {
            second += dice.below(4);
            let client = dice.zipf(u64::from(self.clients.get()));
            let page = dice.zipf(u64::from(self.pages.get()));
            let method = if dice.one_in(9) { "POST" } else { "GET" };
            let status = match dice.below(20) {
                0 => 404,
                1 => 304,
                2 => 301,
                3 if dice.one_in(3) => 500,
                _ => 200,
            };
            write!(
                out,
                "10.{}.{}.{} - - [{:02}/Mar/2026:{:02}:{:02}:{:02} +0000] \"{method} /{}/{}",
                client >> 16 & 255,
                client >> 8 & 255,
                client & 255,
                second / 86_400 % 31 + 1,
                second / 3600 % 24,
                second / 60 % 60,
                second % 60,
                word(page % 40),
                word(page),
            )?;
            if dice.one_in(3) {
                write!(out, "?{}={}&page={}", word(dice.below(20)), word(dice.below(5000)), dice.below(50))?;
            }
            let bytes = dice.zipf(1 << 20);
            write!(out, " HTTP/1.1\" {status} {bytes} \"")?;
            match dice.below(3) {
                0 => write!(out, "-")?,
                _ => write!(out, "https://{}.example/{}", word(dice.zipf(300)), word(dice.zipf(4000)))?,
            }
            writeln!(out, "\" \"{}\"", dice.pick(&AGENTS))?;
        }
        Ok(())
    }
}
