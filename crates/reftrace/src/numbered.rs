//! Enums whose values are numbers, in words or as indices, declared once: all of their values, the value of a
//! number, and their names in output where they have some.

/// Declares such an enum.
#[macro_export]
macro_rules! numbered {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$what:meta])* $value:ident = $number:literal => $text:expr,)+
    }) => {
        $crate::numbered! { $(#[$about])* pub enum $name { $($(#[$what])* $value = $number,)+ } }

        impl $name {
            /// The name in output.
            pub const fn name(self) -> &'static str {
                match self { $($name::$value => $text,)+ }
            }
        }
    };
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$what:meta])* $value:ident = $number:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$what])* $value = $number,)+ }

        impl $name {
            /// All, in the order of their numbers.
            pub const ALL: [$name; [$($number),+].len()] = [$($name::$value),+];

            /// The value of a number.
            pub fn from_number(number: u64) -> Option<$name> {
                match number {
                    $($number => Some($name::$value),)+
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use numbered;
