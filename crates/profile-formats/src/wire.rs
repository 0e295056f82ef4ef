//! Protocol Buffers, of which pprof's and Perfetto's messages use numbers, texts, and messages in messages.

/// What is wrong with the bytes of a message.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("the message ends within a field")]
    Cut,
    #[error("field {0} has another type than in its format")]
    Type(u64),
    #[error("a text is not UTF-8")]
    Text,
}

/// The value of a field in its bytes.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Numbers of fixed length, which neither format has.
    Fixed,
}

/// A message; fields that it does not know are skipped.
pub trait Message: Default {
    /// Adds its fields.
    fn write(&self, out: &mut Vec<u8>);

    /// Takes the value of the field of this number.
    fn set(&mut self, number: u64, value: Value) -> Result<(), WireError>;

    fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn decode(mut bytes: &[u8]) -> Result<Self, WireError> {
        let mut message = Self::default();
        while !bytes.is_empty() {
            let (number, value) = next(&mut bytes)?;
            message.set(number, value)?;
        }
        Ok(message)
    }
}

/// The number and the value of the next field.
pub fn next<'a>(bytes: &mut &'a [u8]) -> Result<(u64, Value<'a>), WireError> {
    let key = number(bytes)?;
    let value = match key & 7 {
        0 => Value::Number(number(bytes)?),
        1 => take(bytes, 8).map(|_| Value::Fixed)?,
        2 => {
            let length = number(bytes)?;
            Value::Bytes(take(bytes, length)?)
        }
        5 => take(bytes, 4).map(|_| Value::Fixed)?,
        _ => return Err(WireError::Type(key >> 3)),
    };
    Ok((key >> 3, value))
}

/// A field of a message.
pub trait Field {
    /// Adds it; nothing where it has no value, or that of a message that was never filled.
    fn write(&self, number: u64, out: &mut Vec<u8>);

    /// Takes a value.
    fn set(&mut self, number: u64, value: Value) -> Result<(), WireError>;
}

/// What a field has one or more of.
pub trait Single: Sized {
    /// Adds it, with the number of its field.
    fn put(&self, number: u64, out: &mut Vec<u8>);

    /// It in a value of this field.
    fn taken(number: u64, value: Value) -> Result<Self, WireError>;
}

/// Numbers with a field each, as formats have them that are older than fields of many numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unpacked(pub Vec<u64>);

/// The next number: seven bits a byte, the lowest first.
fn number(bytes: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(WireError::Cut)
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], WireError> {
    let length = usize::try_from(length).map_err(|_| WireError::Cut)?;
    let (taken, rest) = bytes.split_at_checked(length).ok_or(WireError::Cut)?;
    *bytes = rest;
    Ok(taken)
}

fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(number: u64, bytes: &[u8], out: &mut Vec<u8>) {
    put(number << 3 | 2, out);
    put(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(
            impl Single for $type {
                fn put(&self, number: u64, out: &mut Vec<u8>) {
                    put(number << 3, out);
                    put(*self as u64, out);
                }

                fn taken(number: u64, value: Value) -> Result<Self, WireError> {
                    match value {
                        Value::Number(value) => Ok(value as $type),
                        Value::Bytes(_) | Value::Fixed => Err(WireError::Type(number)),
                    }
                }
            }

            impl Field for $type {
                fn write(&self, number: u64, out: &mut Vec<u8>) {
                    if *self != 0 {
                        self.put(number, out);
                    }
                }

                fn set(&mut self, number: u64, value: Value) -> Result<(), WireError> {
                    *self = Self::taken(number, value)?;
                    Ok(())
                }
            }

            /// Written in one value; read as one, or as a value each.
            impl Field for Vec<$type> {
                fn write(&self, number: u64, out: &mut Vec<u8>) {
                    if !self.is_empty() {
                        let mut all = Vec::new();
                        self.iter().for_each(|value| put(*value as u64, &mut all));
                        put_bytes(number, &all, out);
                    }
                }

                fn set(&mut self, number: u64, value: Value) -> Result<(), WireError> {
                    let Value::Bytes(mut bytes) = value else {
                        self.push(<$type>::taken(number, value)?);
                        return Ok(());
                    };
                    while !bytes.is_empty() {
                        self.push(self::number(&mut bytes)? as $type);
                    }
                    Ok(())
                }
            }
        )*
    };
}

numbers!(u64, i64, u32, i32);

impl Single for bool {
    fn put(&self, number: u64, out: &mut Vec<u8>) {
        u64::from(*self).put(number, out);
    }

    fn taken(number: u64, value: Value) -> Result<Self, WireError> {
        Ok(u64::taken(number, value)? != 0)
    }
}

impl Field for bool {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        u64::from(*self).write(number, out);
    }

    fn set(&mut self, number: u64, value: Value) -> Result<(), WireError> {
        *self = Self::taken(number, value)?;
        Ok(())
    }
}

impl Single for Vec<u8> {
    fn put(&self, number: u64, out: &mut Vec<u8>) {
        put_bytes(number, self, out);
    }

    fn taken(number: u64, value: Value) -> Result<Self, WireError> {
        match value {
            Value::Bytes(bytes) => Ok(bytes.to_vec()),
            Value::Number(_) | Value::Fixed => Err(WireError::Type(number)),
        }
    }
}

impl Single for String {
    fn put(&self, number: u64, out: &mut Vec<u8>) {
        put_bytes(number, self.as_bytes(), out);
    }

    fn taken(number: u64, value: Value) -> Result<Self, WireError> {
        String::from_utf8(Vec::taken(number, value)?).map_err(|_| WireError::Text)
    }
}

impl<M: Message> Single for M {
    fn put(&self, number: u64, out: &mut Vec<u8>) {
        put_bytes(number, &self.encoded(), out);
    }

    fn taken(number: u64, value: Value) -> Result<Self, WireError> {
        match value {
            Value::Bytes(bytes) => M::decode(bytes),
            Value::Number(_) | Value::Fixed => Err(WireError::Type(number)),
        }
    }
}

impl<T: Single> Field for Option<T> {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.put(number, out));
    }

    fn set(&mut self, number: u64, value: Value) -> Result<(), WireError> {
        *self = Some(T::taken(number, value)?);
        Ok(())
    }
}

impl Field for Vec<String> {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.put(number, out));
    }

    fn set(&mut self, number: u64, value: Value) -> Result<(), WireError> {
        self.push(String::taken(number, value)?);
        Ok(())
    }
}

impl<M: Message> Field for Vec<M> {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.put(number, out));
    }

    fn set(&mut self, number: u64, value: Value) -> Result<(), WireError> {
        self.push(M::taken(number, value)?);
        Ok(())
    }
}

impl Field for Unpacked {
    fn write(&self, number: u64, out: &mut Vec<u8>) {
        self.0.iter().for_each(|value| value.put(number, out));
    }

    fn set(&mut self, number: u64, value: Value) -> Result<(), WireError> {
        self.0.set(number, value)
    }
}

/// Structures of fields, each with its number.
macro_rules! messages {
    ($($(#[$about:meta])* struct $name:ident {
        $($(#[$field_about:meta])* $number:literal => $field:ident: $type:ty,)*
    })*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, Default, PartialEq)]
            pub struct $name {
                $($(#[$field_about])* pub $field: $type,)*
            }

            impl $crate::wire::Message for $name {
                fn write(&self, out: &mut Vec<u8>) {
                    $($crate::wire::Field::write(&self.$field, $number, out);)*
                }

                fn set(
                    &mut self,
                    number: u64,
                    value: $crate::wire::Value,
                ) -> Result<(), $crate::wire::WireError> {
                    match number {
                        $($number => $crate::wire::Field::set(&mut self.$field, number, value),)*
                        _ => Ok(()),
                    }
                }
            }
        )*
    };
}
pub(crate) use messages;

#[cfg(test)]
mod tests {
    use super::*;

    messages! {
        struct Inner {
            1 => signed: i64,
        }
        struct Outer {
            1 => number: u64,
            2 => flag: bool,
            3 => packed: Vec<i64>,
            4 => texts: Vec<String>,
            5 => parts: Vec<Inner>,
            16 => part: Option<Inner>,
            17 => unpacked: Unpacked,
            18 => absent: Option<u32>,
        }
    }

    fn outer() -> Outer {
        Outer {
            number: u64::MAX,
            flag: true,
            packed: vec![-1, 0, 300],
            texts: vec![String::new(), "é".into()],
            parts: vec![Inner { signed: -2 }, Inner::default()],
            part: Some(Inner { signed: 7 }),
            unpacked: Unpacked(vec![1, 2]),
            absent: Some(0),
        }
    }

    /// The example of the format's own documentation: 150 is two bytes.
    #[test]
    fn bytes_are_those_of_the_format() {
        assert_eq!(Outer { number: 150, ..Outer::default() }.encoded(), [0x08, 0x96, 0x01]);
        let packed = Outer { packed: vec![3, 270, 86942], ..Outer::default() };
        assert_eq!(packed.encoded(), [0x1a, 6, 3, 0x8e, 2, 0x9e, 0xa7, 5]);
        let text = Outer { texts: vec!["testing".into()], ..Outer::default() };
        assert_eq!(text.encoded(), *b"\x22\x07testing");
        let unpacked = Outer { unpacked: Unpacked(vec![1, 2]), absent: Some(0), ..Outer::default() };
        assert_eq!(unpacked.encoded(), [0x88, 1, 1, 0x88, 1, 2, 0x90, 1, 0]);
    }

    #[test]
    fn a_message_is_read_back_and_unknown_fields_are_skipped() {
        let mut bytes = outer().encoded();
        // A number, eight bytes, a text and four bytes, of fields 100 to 103.
        bytes.extend(b"\xa0\x06\x01\xa9\x0612345678\xb2\x06\x01x\xbd\x061234");
        assert_eq!(Outer::decode(&bytes).expect("a message"), outer());
        let one_by_one = Outer::decode(&[0x18, 1, 0x18, 2]).expect("a message");
        assert_eq!(one_by_one.packed, [1, 2], "not packed");
    }

    #[test]
    fn damaged_messages_are_errors_and_take_no_memory() {
        let bytes = outer().encoded();
        for length in 0..bytes.len() {
            // Some prefixes end between two fields.
            let _ = Outer::decode(&bytes[..length]);
        }
        for damaged in [
            &b"\x08"[..],
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7fx",
            b"\x22\x01\xff",
            b"\x0a\x00",
            b"\x20\x01",
            b"\x0b",
            b"\x2a\x02\x0a\x00",
        ] {
            assert!(Outer::decode(damaged).is_err(), "{damaged:?}");
        }
    }
}
