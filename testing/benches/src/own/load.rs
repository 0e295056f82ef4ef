//! Other work on the machine: busy processes.

use std::process::{Child, Command, Stdio};

use crate::Error;

/// How many of them a loaded machine has.
pub const BUSY: usize = 4;

/// Processes that use the processors until this is dropped.
pub struct Load(Vec<Child>);

impl Load {
    /// Starts `count` of them.
    ///
    /// # Errors
    /// One cannot be started.
    pub fn start(count: usize) -> Result<Load, Error> {
        let tool = std::env::current_exe().map_err(Error::system("find this program"))?;
        let mut load = Load(Vec::new());
        for _ in 0..count {
            let mut spin = Command::new(&tool);
            spin.args(["spin", "86400000"]).stdout(Stdio::null());
            load.0.push(spin.spawn().map_err(Error::system("start a busy process"))?);
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
