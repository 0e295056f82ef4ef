//! Which arguments of a routine the record of its call states, in the order of the routine of C whose work it does.

use std::fmt;

use heaptoll_reftrace::Routine;

use crate::allocator_symbols::definition::RoutineDefinition;

/// Arguments that the tracer can read: those in registers.
const ARGUMENTS: u8 = 4;

/// Where a recorded argument comes from; its text is that of the tracer's file (`tracer/symbols.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// Nowhere.
    None,
    /// It is this one.
    One(u8),
    /// The product of these two.
    Product(u8, u8),
    /// It is always this.
    Constant(u32),
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::None => f.write_str("-"),
            Argument::One(at) => write!(f, "{at}"),
            Argument::Product(one, other) => write!(f, "{one}*{other}"),
            Argument::Constant(value) => write!(f, "={value}"),
        }
    }
}

/// The routine of C with this name.
fn routine(name: &str) -> Result<Routine, String> {
    let named = |routine: &Routine| routine.name() == name;
    Routine::ALL.into_iter().find(named).ok_or_else(|| {
        let all: Vec<&str> = Routine::ALL.iter().map(|routine| routine.name()).collect();
        format!("`{name}` is not a routine of C; it can be {}", all.join(", "))
    })
}

/// The routine of C, and its arguments in the order of C.
///
/// # Errors
/// What is missing, superfluous or out of range.
pub fn of(defined: &RoutineDefinition) -> Result<(Routine, [Argument; 3]), String> {
    let routine = routine(&defined.is)?;
    let all = [
        ("size", defined.size),
        ("count", defined.count),
        ("alignment", defined.alignment),
        ("block", defined.block),
        ("place", defined.place),
    ];
    if let Some((name, at)) =
        all.iter().find_map(|(name, at)| Some((name, (*at)?)).filter(|(_, at)| *at >= ARGUMENTS))
    {
        return Err(format!("`{name} = {at}`: arguments are numbered from 0 to {}", ARGUMENTS - 1));
    }
    let (needed, optional) = roles(routine);
    for (name, at) in all {
        if at.is_none() && needed.contains(&name) {
            return Err(format!("`{name}` is missing: {} has one", routine.name()));
        }
        if at.is_some() && !needed.contains(&name) && !optional.contains(&name) {
            return Err(format!("`{name}` means nothing: {} has none", routine.name()));
        }
    }
    let one = |at: Option<u8>| at.map_or(Argument::None, Argument::One);
    let bytes = match (defined.count, defined.size) {
        (Some(count), Some(size)) => Argument::Product(count, size),
        (_, size) => one(size),
    };
    let count = defined.count.map_or(Argument::Constant(1), Argument::One);
    let (size, block, alignment) = (one(defined.size), one(defined.block), one(defined.alignment));
    Ok((
        routine,
        match routine {
            Routine::Malloc | Routine::Valloc | Routine::New => [bytes, Argument::None, Argument::None],
            Routine::NewAligned => [bytes, alignment, Argument::None],
            Routine::Free | Routine::Delete | Routine::UsableSize => [block, Argument::None, Argument::None],
            Routine::Calloc => [count, size, Argument::None],
            Routine::Realloc => [block, bytes, Argument::None],
            Routine::Reallocarray => [block, count, size],
            Routine::Memalign | Routine::AlignedAlloc => [alignment, bytes, Argument::None],
            Routine::PosixMemalign => [one(defined.place), alignment, bytes],
        },
    ))
}

/// What a routine must have, and what it may have.
fn roles(routine: Routine) -> (&'static [&'static str], &'static [&'static str]) {
    match routine {
        Routine::Malloc | Routine::Valloc | Routine::New | Routine::Calloc => (&["size"], &["count"]),
        Routine::Memalign | Routine::AlignedAlloc | Routine::NewAligned => {
            (&["size", "alignment"], &["count"])
        }
        Routine::Free | Routine::Delete | Routine::UsableSize => (&["block"], &[]),
        Routine::Realloc => (&["block", "size"], &["count"]),
        Routine::Reallocarray => (&["block", "count", "size"], &[]),
        Routine::PosixMemalign => (&["place", "size"], &["alignment", "count"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defined(is: &str, set: impl FnOnce(&mut RoutineDefinition)) -> Result<String, String> {
        let mut made = RoutineDefinition {
            symbol: "x".into(),
            is: is.into(),
            size: None,
            count: None,
            alignment: None,
            block: None,
            place: None,
        };
        set(&mut made);
        of(&made).map(|(routine, all)| format!("{} {} {} {}", routine as u8, all[0], all[1], all[2]))
    }

    #[test]
    fn arguments_come_in_the_order_of_c() {
        let aligned = defined("memalign", |one| (one.size, one.alignment) = (Some(0), Some(1)));
        assert_eq!(aligned.as_deref(), Ok("6 1 0 -"));
        assert_eq!(defined("calloc", |one| one.size = Some(0)).as_deref(), Ok("3 =1 0 -"));
        let product = defined("malloc", |one| (one.count, one.size) = (Some(1), Some(2)));
        assert_eq!(product.as_deref(), Ok("1 1*2 - -"));
        let resized = defined("realloc", |one| (one.block, one.size) = (Some(0), Some(3)));
        assert_eq!(resized.as_deref(), Ok("4 0 3 -"));
    }

    #[test]
    fn what_is_missing_superfluous_or_out_of_range_is_named() {
        assert!(defined("malloc", |_| ()).unwrap_err().contains("`size` is missing"));
        assert!(defined("free", |one| one.size = Some(0)).is_err());
        let block = defined("free", |one| (one.block, one.size) = (Some(0), Some(1)));
        assert!(block.unwrap_err().contains("`size` means nothing"));
        assert!(defined("malloc", |one| one.size = Some(4)).unwrap_err().contains("from 0 to 3"));
        assert!(defined("mallok", |_| ()).unwrap_err().contains("malloc, free"));
    }
}
