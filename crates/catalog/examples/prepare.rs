//! Prints the shell command of a program at a size: a way to inspect what heaptoll would run.
//!
//! usage: prepare SHARE BIN CACHE PROGRAM SIZE

use heaptoll_catalog::{Catalog, Places};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [share, bin, cache, program, size] = arguments.as_slice() else {
        return Err("usage: prepare SHARE BIN CACHE PROGRAM SIZE".into());
    };
    let places = Places { bin: bin.into(), added: "/opt/added".into(), inputs_cache: cache.into() };
    let catalog = Catalog::load(share.as_ref())?;
    let program = catalog.find(program)?;
    if let Some(missing) = program.missing(&places) {
        return Err(missing.into());
    }
    let prepared = program.prepare(size.parse()?, &places)?;
    let quoted = |text: &String| format!("'{}'", text.replace('\'', r"'\''"));
    let environment = prepared.environment.iter().map(|(key, value)| format!("{key}={}", quoted(value)));
    let command = prepared.command.iter().map(quoted);
    print!("env {}", environment.chain(command).collect::<Vec<_>>().join(" "));
    match prepared.stdin {
        Some(path) => println!(" < {}", quoted(&path.display().to_string())),
        None => println!(" < /dev/null"),
    }
    Ok(())
}
