//! The notation of torrents (BEP 3), without negative numbers, which no torrent here needs.

use std::collections::BTreeMap;

/// Tables in tables deeper than any torrent has.
const DEPTH_MAX: u32 = 16;

pub enum Value {
    Number(u64),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    /// Keys are in the order of their bytes.
    Table(BTreeMap<Vec<u8>, Value>),
}

impl Value {
    pub fn table(&self) -> Option<&BTreeMap<Vec<u8>, Value>> {
        match self {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.table()?.get(key.as_bytes())
    }
}

pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Number(number) => out.extend_from_slice(format!("i{number}e").as_bytes()),
        Value::Bytes(bytes) => {
            out.extend_from_slice(format!("{}:", bytes.len()).as_bytes());
            out.extend_from_slice(bytes);
        }
        Value::List(values) => {
            out.push(b'l');
            values.iter().for_each(|value| write(value, out));
            out.push(b'e');
        }
        Value::Table(entries) => {
            out.push(b'd');
            for (key, value) in entries {
                out.extend_from_slice(format!("{}:", key.len()).as_bytes());
                out.extend_from_slice(key);
                write(value, out);
            }
            out.push(b'e');
        }
    }
}

/// The one value that these bytes spell.
pub fn read(bytes: &[u8]) -> Option<Value> {
    let mut rest = bytes;
    let value = take(&mut rest, DEPTH_MAX)?;
    rest.is_empty().then_some(value)
}

fn take(rest: &mut &[u8], depth: u32) -> Option<Value> {
    match rest.first()? {
        b'i' => {
            *rest = &rest[1..];
            Some(Value::Number(number(rest, b'e')?))
        }
        b'l' => {
            let mut values = Vec::new();
            *rest = &rest[1..];
            while !ends(rest)? {
                values.push(take(rest, depth.checked_sub(1)?)?);
            }
            Some(Value::List(values))
        }
        b'd' => {
            let mut table = BTreeMap::new();
            *rest = &rest[1..];
            while !ends(rest)? {
                let key = string(rest)?;
                table.insert(key, take(rest, depth.checked_sub(1)?)?);
            }
            Some(Value::Table(table))
        }
        _ => Some(Value::Bytes(string(rest)?)),
    }
}

/// Whether a list or a table ends here.
fn ends(rest: &mut &[u8]) -> Option<bool> {
    let is_end = *rest.first()? == b'e';
    *rest = &rest[usize::from(is_end)..];
    Some(is_end)
}

fn string(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let len = usize::try_from(number(rest, b':')?).ok()?;
    let (bytes, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(bytes.to_vec())
}

/// Decimal digits up to a sign that ends them.
fn number(rest: &mut &[u8], end: u8) -> Option<u64> {
    let len = rest.iter().position(|byte| *byte == end)?;
    let (digits, after) = rest.split_at(len);
    *rest = &after[1..];
    let is_plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_plain)?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of BEP 3.
    #[test]
    fn what_is_written_is_read() {
        for spelled in [
            "4:spam",
            "i3e",
            "l4:spam4:eggse",
            "d3:cow3:moo4:spam4:eggse",
            "d4:spaml1:a1:bee",
            "le",
            "de",
            "0:",
        ] {
            let mut again = Vec::new();
            let value = read(spelled.as_bytes());
            write(&value.unwrap_or(Value::Number(9)), &mut again);
            assert_eq!(String::from_utf8_lossy(&again), spelled);
        }
    }

    #[test]
    fn what_is_no_torrent_is_no_value() {
        let deep = "l".repeat(100) + &"e".repeat(100);
        for spelled in [
            "",
            "i",
            "ie",
            "i-3e",
            "i+3e",
            "l",
            "d3:cow",
            "5:spam",
            "4:spamx",
            "x",
            "di3e1:ae",
            "99999999999999999999:a",
            &deep,
        ] {
            assert!(read(spelled.as_bytes()).is_none(), "{spelled}");
        }
    }
}
