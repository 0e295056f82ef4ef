//! Atomics in place of those of `shm/alloc-ring/src/atomic.rs`. Each has the size of the language's own, so that the
//! file is laid out as it is, and stands for an atomic of loom's, which [`world`] finds by its address.
//!
//! Atomics that one thread alone uses (of the types `AtomicBool` and `AtomicUsize`) remain the language's own.
//!
//! loom takes a sequentially consistent access for an acquiring and releasing one. A fence after each makes it what it
//! is: of two such accesses by one thread, the second does not precede the first.

use std::panic::Location;
use std::rc::Rc;

pub use core::sync::atomic::{Ordering, compiler_fence};
use loom::sync::atomic as modelled;

use crate::mutant::{self, Change};
use crate::world;

fn fence_after(order: Ordering) {
    if order == Ordering::SeqCst {
        modelled::fence(Ordering::SeqCst);
    }
}

/// An atomic integer, and the operations that the sources use.
macro_rules! atomic {
    ($name:ident, $integer:ty) => {
        /// See the module.
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name(core::sync::atomic::$name);

        impl $name {
            /// An atomic of this value.
            pub const fn new(value: $integer) -> $name {
                $name(core::sync::atomic::$name::new(value))
            }

            fn object(&self) -> Option<Rc<modelled::$name>> {
                let value = self.0.load(Ordering::Relaxed);
                world::object(self.0.as_ptr().addr(), value == 0, || modelled::$name::new(value))
            }

            /// See the language's own.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $integer {
                let Some(object) = self.object() else { return self.0.load(order) };
                let change = mutant::change_at(Location::caller());
                let order = change.order(order);
                world::step();
                let value = object.load(order);
                fence_after(order);
                value.wrapping_add(change.added() as $integer)
            }

            /// See the language's own.
            #[track_caller]
            pub fn store(&self, value: $integer, order: Ordering) {
                let Some(object) = self.object() else { return self.0.store(value, order) };
                let change = mutant::change_at(Location::caller());
                match change {
                    Change::Skip => return,
                    Change::Late => {
                        return world::defer(move || {
                            world::step();
                            object.store(value, order);
                        });
                    }
                    _ => {}
                }
                let order = change.order(order);
                world::step();
                object.store(value.wrapping_add(change.added() as $integer), order);
                fence_after(order);
                world::run_deferred();
            }

            /// A read and a write in one step, unless a mutant makes them two.
            fn modify(
                &self,
                order: Ordering,
                caller: &'static Location<'static>,
                modified: impl Fn($integer) -> $integer,
                at_once: impl Fn(&modelled::$name, Ordering) -> $integer,
                of_own: impl Fn(&core::sync::atomic::$name) -> $integer,
            ) -> $integer {
                let Some(object) = self.object() else { return of_own(&self.0) };
                let change = mutant::change_at(caller);
                let order = change.order(order);
                world::step();
                let value = match change {
                    Change::Skip => object.load(order),
                    Change::Torn => {
                        let value = object.load(Ordering::Acquire);
                        object.store(modified(value), Ordering::Release);
                        value
                    }
                    _ => at_once(&object, order),
                };
                fence_after(order);
                value
            }

            /// See the language's own.
            #[track_caller]
            pub fn swap(&self, value: $integer, order: Ordering) -> $integer {
                let caller = Location::caller();
                self.modify(
                    order,
                    caller,
                    |_| value,
                    |a, order| a.swap(value, order),
                    |a| a.swap(value, order),
                )
            }

            /// See the language's own.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $integer,
                new: $integer,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$integer, $integer> {
                let Some(object) = self.object() else {
                    return self.0.compare_exchange(current, new, success, failure);
                };
                let change = mutant::change_at(Location::caller());
                let success = change.order(success);
                world::step();
                let result = if change == Change::Torn {
                    let value = object.load(Ordering::Acquire);
                    if value == current {
                        object.store(new, Ordering::Release);
                        Ok(value)
                    } else {
                        Err(value)
                    }
                } else {
                    object.compare_exchange(current, new, success, failure)
                };
                fence_after(if result.is_ok() { success } else { failure });
                result
            }

            /// See the language's own. It does not fail without reason here.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $integer,
                new: $integer,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$integer, $integer> {
                self.compare_exchange(current, new, success, failure)
            }
        }
    };
}

/// Operations by which a value and an operand give the next value.
macro_rules! operations {
    ($name:ident, $integer:ty, $($operation:ident $next:expr;)*) => {
        impl $name {
            $(
                /// See the language's own.
                #[track_caller]
                pub fn $operation(&self, operand: $integer, order: Ordering) -> $integer {
                    let next: fn($integer, $integer) -> $integer = $next;
                    self.modify(
                        order,
                        Location::caller(),
                        |value| next(value, operand),
                        |a, order| a.$operation(operand, order),
                        |a| a.$operation(operand, order),
                    )
                }
            )*
        }
    };
}

atomic!(AtomicU8, u8);
atomic!(AtomicU32, u32);
atomic!(AtomicI32, i32);
atomic!(AtomicU64, u64);

operations! { AtomicU8, u8, fetch_or |a, b| a | b; }
operations! { AtomicU64, u64, fetch_add u64::wrapping_add; }
operations! { AtomicU32, u32,
    fetch_add u32::wrapping_add;
    fetch_sub u32::wrapping_sub;
    fetch_or |a, b| a | b;
    fetch_and |a, b| a & b;
    fetch_min Ord::min;
}

impl AtomicU32 {
    /// Its address, for a futex.
    pub fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// What the kernel reads of a futex: no step of the sources.
    pub fn of_futex(&self) -> u32 {
        self.object().map_or_else(|| self.0.load(Ordering::Acquire), |object| object.load(Ordering::Acquire))
    }
}

/// An atomic pointer: its address is modelled.
#[derive(Debug)]
#[repr(transparent)]
pub struct AtomicPtr<T>(AtomicU64, std::marker::PhantomData<*mut T>);

// SAFETY: it only carries an address, as the language's own does.
unsafe impl<T> Sync for AtomicPtr<T> {}
// SAFETY: it only carries an address, as the language's own does.
unsafe impl<T> Send for AtomicPtr<T> {}

impl<T> AtomicPtr<T> {
    /// The sources begin with null pointers only.
    pub const fn new(null: *mut T) -> AtomicPtr<T> {
        assert!(null.is_null());
        AtomicPtr(AtomicU64::new(0), std::marker::PhantomData)
    }

    /// See the language's own.
    #[track_caller]
    pub fn load(&self, order: Ordering) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.0.load(order) as usize)
    }

    /// See the language's own.
    #[track_caller]
    pub fn store(&self, value: *mut T, order: Ordering) {
        self.0.store(value.expose_provenance() as u64, order);
    }
}
