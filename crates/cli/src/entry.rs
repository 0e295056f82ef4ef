//! What a command states of itself, next to its arguments, and the entry of the registry ([`crate::command`]) that is made of it.

use clap::{ArgMatches, Args};
use heaptoll_command::failure::Failure;
#[cfg(feature = "schemas")]
use heaptoll_command::schema::CommandSchema;

/// A command, implemented by its arguments.
pub trait Command: Args {
    /// Its words after `heaptoll`.
    const NAME: &'static str;
    /// The name that it had before.
    const FORMER: Option<&'static str> = None;
    /// The options that `-h` shows first, by their names in the code.
    const FIRST: &'static [&'static str] = &[];
    /// The JSON files that it writes ([`writes`]).
    #[cfg(feature = "schemas")]
    const SCHEMAS: &'static [CommandSchema] = &[];

    /// Runs it, and returns the exit status.
    ///
    /// # Errors
    /// See [`Failure`].
    fn run(arguments: &Self) -> Result<u8, Failure>;
}

/// The types of the JSON files that a command writes, after the constructor of their [`CommandSchema`].
#[macro_export]
macro_rules! writes {
    ($made:ident: $($figures:ty),+) => {
        #[cfg(feature = "schemas")]
        const SCHEMAS: &'static [heaptoll_command::schema::CommandSchema] =
            &[$(heaptoll_command::schema::CommandSchema::$made::<$figures>()),+];
    };
}

/// The entries of commands; each is a module with its `Arguments`.
#[macro_export]
macro_rules! entries {
    ($($command:ident),+ $(,)?) => { &[$($crate::entry::Entry::of::<$command::Arguments>()),+] };
}

pub use {entries, writes};

/// A command as the registry holds it: the fields are those of [`Command`].
#[derive(Clone, Copy)]
pub struct Entry {
    pub name: &'static str,
    pub former: Option<&'static str>,
    pub first: &'static [&'static str],
    #[cfg(feature = "schemas")]
    pub schemas: &'static [CommandSchema],
    /// Adds its arguments to its definition.
    pub define: fn(clap::Command) -> clap::Command,
    /// Runs it with what was matched, and with the definitions of all commands.
    pub run: fn(&ArgMatches, &dyn Fn() -> clap::Command) -> Result<u8, Failure>,
}

impl Entry {
    /// That of a command.
    pub const fn of<C: Command>() -> Entry {
        Entry {
            name: C::NAME,
            former: C::FORMER,
            first: C::FIRST,
            #[cfg(feature = "schemas")]
            schemas: C::SCHEMAS,
            define: C::augment_args,
            run: |matches, _| {
                let arguments = C::from_arg_matches(matches);
                C::run(&arguments.map_err(|error| Failure::Refused(Box::new(error)))?)
            },
        }
    }
}
