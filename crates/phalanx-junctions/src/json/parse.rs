//! From text to values.

use super::number::number;
use super::{Data, Value};
use crate::error::{Error, Result, Source};

/// How deep arrays and objects may lie in each other. CityFlow's files need eight levels.
const DEEPEST: usize = 64;

/// The value of a whole file.
pub(crate) fn parse(text: &str, source: Source) -> Result<Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { text: text.as_bytes(), at: 0, line: 1, source };
    let value = reader.value(0)?;
    reader.space();
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.error("nothing may follow the value that the file holds")),
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
    source: Source,
}

impl Reader<'_> {
    fn error(&self, what: impl Into<String>) -> Error {
        Error::Syntax { source_file: self.source, line: self.line, what: what.into() }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.line += usize::from(self.text[self.at] == b'\n');
            self.at += 1;
        }
    }

    /// Takes `byte` if it is next, after space.
    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        self.space();
        if depth > DEEPEST {
            return Err(self.error(format!("values lie more than {DEEPEST} deep in each other")));
        }
        let line = self.line;
        let data = match self.peek() {
            None if self.at == 0 => return Err(self.error("the file is empty")),
            None => return Err(self.error("the file ends inside a value")),
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Data::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => {
                let (number, used) = number(&self.text[self.at..]).map_err(|what| self.error(what))?;
                self.at += used;
                Data::Number(number)
            }
            Some(_) => self.word()?,
        };
        Ok(Value { line, data })
    }

    fn word(&mut self) -> Result<Data> {
        let rest = &self.text[self.at..];
        let words = [("true", Data::Bool(true)), ("false", Data::Bool(false)), ("null", Data::Null)];
        for (word, data) in words {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(data);
            }
        }
        let found = String::from_utf8_lossy(&rest[..rest.len().min(8)]).into_owned();
        Err(self.error(format!("a JSON value was expected, found {found:?}")))
    }

    fn array(&mut self, depth: usize) -> Result<Data> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Data::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Data::Array(items));
            }
            if !self.take(b',') {
                return Err(self.error("an array goes on with ',' or ends with ']'"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Data> {
        self.at += 1;
        let mut members = Vec::new();
        if self.take(b'}') {
            return Ok(Data::Object(members));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.error("a member of an object starts with its name in quotes"));
            }
            let name = self.string()?;
            if !self.take(b':') {
                return Err(self.error(format!("':' must follow the name {name:?}")));
            }
            members.push((name, self.value(depth + 1)?));
            if self.take(b'}') {
                return Ok(Data::Object(members));
            }
            if !self.take(b',') {
                return Err(self.error("an object goes on with ',' or ends with '}'"));
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let Some(byte) = self.peek() else { return Err(self.error("a string has no end")) };
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    let letter = self.escape()?;
                    bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
                0..=31 => return Err(self.error("a string may not hold control characters")),
                _ => bytes.push(byte),
            }
        }
        String::from_utf8(bytes).map_err(|_| self.error("a string is not UTF-8"))
    }

    fn escape(&mut self) -> Result<char> {
        let letter = self.peek().unwrap_or(0);
        self.at += 1;
        Ok(match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.four_digits()?;
                let pair = (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with(b"\\u");
                let code = if pair {
                    self.at += 2;
                    let second = self.four_digits()?;
                    0x10000 + ((first - 0xd800) << 10) + (second.wrapping_sub(0xdc00) & 0x3ff)
                } else {
                    first
                };
                char::from_u32(code).ok_or_else(|| self.error("a string holds half a character"))?
            }
            _ => return Err(self.error("a string holds an escape that JSON does not know")),
        })
    }

    fn four_digits(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.error("\\u needs four hexadecimal digits"))?;
        self.at += 4;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse(text, Source::Flow).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(message(""), "flow: line 1: the file is empty");
        assert_eq!(message("[1,\n2"), "flow: line 2: an array goes on with ',' or ends with ']'");
        assert_eq!(message("{\n\"a\" 1}"), "flow: line 2: ':' must follow the name \"a\"");
        assert_eq!(message("[nan]"), "flow: line 1: a JSON value was expected, found \"nan]\"");
        assert_eq!(message("1 2"), "flow: line 1: nothing may follow the value that the file holds");
        assert!(message(&"[".repeat(1_000_000)).contains("more than 64 deep"));
        assert!(message("\"\\ud800\"").contains("half a character"));
    }

    #[test]
    fn strings_and_values_are_read() {
        let value = parse(r#" {"a\u00e4\n": [true, null, -1.5, "\ud83d\ude00"]} "#, Source::Flow).unwrap();
        let Data::Object(members) = value.data else { panic!() };
        assert_eq!(members[0].0, "aä\n");
        let Data::Array(items) = &members[0].1.data else { panic!() };
        assert!(matches!(&items[3].data, Data::String(text) if text == "😀"));
    }
}
