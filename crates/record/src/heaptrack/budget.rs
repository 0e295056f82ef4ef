//! The memory that tables and objects of a recording may take.

/// What is left of it.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    left_bytes: u64,
}

/// There is not enough left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded;

impl Budget {
    pub fn new(limit_bytes: u64) -> Budget {
        Budget { left_bytes: limit_bytes }
    }

    /// Takes these bytes of it.
    ///
    /// # Errors
    /// They are more than what is left.
    pub fn take(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.left_bytes = self.left_bytes.checked_sub(bytes as u64).ok_or(Exceeded)?;
        Ok(())
    }

    /// Takes what a table of these entries needs to grow by others: where its capacity is used up it doubles.
    ///
    /// # Errors
    /// That is more than what is left.
    pub fn grow<T>(&mut self, table: &mut Vec<T>, added: usize) -> Result<(), Exceeded> {
        if table.capacity() - table.len() < added {
            let more = added.max(table.capacity()).max(4);
            self.take(size_of::<T>().saturating_mul(more))?;
            table.reserve_exact(table.capacity() - table.len() + more);
        }
        Ok(())
    }
}
