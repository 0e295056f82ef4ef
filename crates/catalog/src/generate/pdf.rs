//! A document in PDF: pages of text in a font that every reader has.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `pages` pages of `lines` lines of text each.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pdf {
    seed: u64,
    pages: NonZeroU32,
    lines: NonZeroU32,
}

impl Generate for Pdf {
    const VERSION: u32 = 1;

    /// Objects 1 to 3 are catalog, tree of pages and font; page n is 4 + 2n, and its text is the one after it.
    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let pages = self.pages.get();
        let mut file = Objects { out, at: 0, offsets: Vec::new() };
        file.write(b"%PDF-1.4\n")?;
        file.object("<< /Type /Catalog /Pages 2 0 R >>")?;
        let kids: Vec<String> = (0..pages).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
        file.object(&format!("<< /Type /Pages /Count {pages} /Kids [{}] >>", kids.join(" ")))?;
        file.object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")?;
        for page in 0..pages {
            file.object(&format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
                5 + 2 * page
            ))?;
            let text = self.text(&mut dice);
            file.object(&format!("<< /Length {} >>\nstream\n{text}endstream", text.len()))?;
        }
        file.end()
    }
}

impl Pdf {
    fn text(&self, dice: &mut Dice) -> String {
        let mut text = "BT /F1 10 Tf 12 TL 50 800 Td\n".to_owned();
        for _ in 0..self.lines.get() {
            let words: Vec<String> = (0..dice.between(4, 12)).map(|_| word(dice.zipf(4000))).collect();
            text.push_str(&format!("({}) Tj T*\n", words.join(" ")));
        }
        text.push_str("ET\n");
        text
    }
}

/// Objects as they are written, whose places the table at the end names.
struct Objects<'a> {
    out: &'a mut dyn Write,
    at: usize,
    offsets: Vec<usize>,
}

impl Objects<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len();
        self.out.write_all(bytes)
    }

    fn object(&mut self, content: &str) -> io::Result<()> {
        self.offsets.push(self.at);
        let number = self.offsets.len();
        self.write(format!("{number} 0 obj\n{content}\nendobj\n").as_bytes())
    }

    fn end(mut self) -> io::Result<()> {
        let (start, count) = (self.at, self.offsets.len() + 1);
        let rows: String = self.offsets.iter().map(|offset| format!("{offset:010} 00000 n \n")).collect();
        self.write(format!("xref\n0 {count}\n0000000000 65535 f \n{rows}").as_bytes())?;
        self.write(
            format!("trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").as_bytes(),
        )
    }
}
