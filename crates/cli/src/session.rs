//! What every command that runs programs begins with: the installation, Ctrl-C, and the terminal for messages.

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_command::own_input::OwnInput;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::places::Places;

use crate::interrupt;
use crate::messages::TerminalMessages;

/// The surroundings of one command.
pub struct Session {
    /// Where heaptoll's parts are installed.
    pub places: Places,
    /// Set by Ctrl-C.
    pub interrupt: Interrupt,
    own_input: OwnInput,
    messages: TerminalMessages,
}

impl Session {
    /// Finds the installation, and watches for Ctrl-C from now on.
    ///
    /// # Errors
    /// Parts are missing, or signals cannot be caught.
    pub fn begin() -> Result<Session, Failure> {
        let places = Places::find()?;
        Ok(Session {
            places,
            interrupt: interrupt::watch()?,
            own_input: OwnInput::default(),
            messages: TerminalMessages::default(),
        })
    }

    /// The same for the library.
    pub fn context(&self) -> Context<'_> {
        Context {
            places: &self.places,
            interrupt: &self.interrupt,
            own_input: &self.own_input,
            messages: &self.messages,
        }
    }
}
