//! Runs an SQL script on a database in memory, with or without SQLite's own cache of small blocks (lookaside), and
//! prints rows as the `sqlite3` program does: its columns with `|` between.
//!
//! Debian compiles SQLite with `OMIT_LOOKASIDE`, so that the cache can neither be had nor be switched off there. This
//! one is linked with the SQLite that the crate `libsqlite3-sys` carries, where it is as SQLite's authors have it.
//!
//! usage: heaptoll-sqlite [--no-lookaside] < script.sql

use std::error::Error;
use std::ffi::CString;
use std::io::{self, BufRead, BufWriter, Write};
use std::process::ExitCode;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, Row, ffi};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let lookaside = match arguments.as_slice() {
        [] => true,
        [option] if option == "--no-lookaside" => false,
        _ => {
            eprintln!("usage: heaptoll-sqlite [--no-lookaside] < script.sql");
            return ExitCode::from(2);
        }
    };
    match run(lookaside) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("heaptoll-sqlite: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(lookaside: bool) -> Result<(), Box<dyn Error>> {
    if !lookaside {
        // SAFETY: SQLite is not in use yet, and this option takes two ints: bytes of a slot and number of slots.
        let code = unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_LOOKASIDE, 0, 0) };
        if code != ffi::SQLITE_OK {
            return Err(format!("SQLite does not let its lookaside be switched off (code {code})").into());
        }
    }
    let database = Connection::open_in_memory()?;
    let mut out = BufWriter::new(io::stdout().lock());
    // Statement by statement, as `sqlite3` does: SQLite copies all of the text it is given for every statement in it.
    let mut text = String::new();
    for line in io::stdin().lock().lines() {
        text.push_str(&line.map_err(|problem| format!("cannot read the script: {problem}"))?);
        text.push('\n');
        if complete(&text)? {
            execute(&database, &text, &mut out)?;
            text.clear();
        }
    }
    execute(&database, &text, &mut out)?;
    out.flush()?;
    Ok(())
}

/// Whether the text ends where a statement does.
fn complete(text: &str) -> Result<bool, Box<dyn Error>> {
    if !text.trim_end().ends_with(';') {
        return Ok(false);
    }
    let text = CString::new(text)?;
    // SAFETY: the text ends with a zero and is only read, before the call returns.
    Ok(unsafe { ffi::sqlite3_complete(text.as_ptr()) } == 1)
}

fn execute(database: &Connection, text: &str, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let mut statements = Batch::new(database, text);
    while let Some(mut statement) = statements.next()? {
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            print(row, columns, out)?;
        }
    }
    Ok(())
}

fn print(row: &Row<'_>, columns: usize, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    for column in 0..columns {
        if column > 0 {
            out.write_all(b"|")?;
        }
        match row.get_ref(column)? {
            ValueRef::Null => {}
            ValueRef::Integer(number) => write!(out, "{number}")?,
            ValueRef::Real(number) => write!(out, "{number}")?,
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => out.write_all(bytes)?,
        }
    }
    writeln!(out)?;
    Ok(())
}
