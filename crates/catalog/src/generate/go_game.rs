//! A session in the Go text protocol: openings of random moves, after which the program plays both sides.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;

/// `games` games on a board of `board` lines (5 to 19): two random stones of each side, then `moves` generated moves.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoGame {
    seed: u64,
    games: NonZeroU32,
    board: NonZeroU32,
    moves: NonZeroU32,
}

/// The protocol leaves out the letter I.
const COLUMNS: &[u8; 19] = b"ABCDEFGHJKLMNOPQRST";

impl Generate for GoGame {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let board = u64::from(self.board.get()).clamp(5, 19);
        for _ in 0..self.games.get() {
            writeln!(out, "boardsize {board}\nclear_board\nkomi 6.5")?;
            let mut taken = Vec::new();
            while taken.len() < 4 {
                let point = (dice.below(board), dice.between(1, board));
                if !taken.contains(&point) {
                    let side = ["black", "white"][taken.len() % 2];
                    writeln!(out, "play {side} {}{}", char::from(COLUMNS[point.0 as usize]), point.1)?;
                    taken.push(point);
                }
            }
            for at in 0..self.moves.get() {
                writeln!(out, "genmove {}", ["black", "white"][at as usize % 2])?;
            }
            writeln!(out, "showboard\nestimate_score")?;
        }
        writeln!(out, "quit")
    }
}
