//! What a program on a device reads and writes, before it is there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use bytemuck::{Pod, cast_slice};

use crate::{Gpu, GpuError, Memory, Program, Result};

/// A type of numbers that arrays hold.
pub trait Element: Pod {
    /// Its name in kernel text.
    const NAME: &'static str;
}

macro_rules! elements {
    ($($element:ty => $name:literal),*) => { $(impl Element for $element { const NAME: &'static str = $name; })* };
}

elements!(u8 => "u8", u16 => "u16", u32 => "u32", i32 => "int", u64 => "u64", f32 => "float", f64 => "double");

/// Arrays, numbers and kernel text of a program.
///
/// Kernel text reads arrays and numbers as `run->name`, and those that change from call to call as
/// `now->name`. Constants are macros: the compiler knows them.
#[derive(Debug, Default)]
pub struct Layout {
    constants: Vec<(String, String)>,
    arrays: Vec<Array>,
    numbers: Vec<(String, &'static str, u64)>,
    now: Vec<(&'static str, &'static str)>,
    texts: Vec<Cow<'static, str>>,
}

#[derive(Debug)]
struct Array {
    name: String,
    element: &'static str,
    bytes: usize,
    /// What it begins with; zeros if there is nothing.
    data: Vec<u8>,
}

impl Layout {
    /// A constant that kernel text knows as a macro.
    pub fn constant(&mut self, name: impl Into<String>, value: impl Display) {
        self.constants.push((name.into(), value.to_string()));
    }

    /// An array of zeros.
    pub fn array<T: Element>(&mut self, name: impl Into<String>, count: usize) {
        let bytes = count * size_of::<T>();
        self.arrays.push(Array { name: name.into(), element: T::NAME, bytes, data: Vec::new() });
    }

    /// An array that begins with these numbers.
    pub fn array_from<T: Element>(&mut self, name: impl Into<String>, numbers: &[T]) {
        let data: Vec<u8> = cast_slice(numbers).to_vec();
        self.arrays.push(Array { name: name.into(), element: T::NAME, bytes: data.len(), data });
    }

    /// A whole number.
    pub fn number(&mut self, name: impl Into<String>, value: i64) {
        self.numbers.push((name.into(), "long long", value as u64));
    }

    /// A real number.
    pub fn real(&mut self, name: impl Into<String>, value: f64) {
        self.numbers.push((name.into(), "double", value.to_bits()));
    }

    /// A number of 8 bytes that changes from call to call: its name, and its type in kernel text.
    pub fn now(&mut self, name: &'static str, kind: &'static str) {
        self.now.push((name, kind));
    }

    /// Kernel text.
    pub fn text(&mut self, text: impl Into<Cow<'static, str>>) {
        self.texts.push(text.into());
    }

    /// Memory that its arrays need.
    pub fn bytes(&self) -> u64 {
        self.arrays.iter().map(|array| array.bytes as u64).sum()
    }

    /// The whole text, as it is compiled.
    pub fn source(&self) -> String {
        let mut text = String::from(include_str!("prelude.cu"));
        for (name, value) in &self.constants {
            let _ = writeln!(text, "#define {name} {value}");
        }
        text.push_str("struct Run {\n");
        for Array { name, element, .. } in &self.arrays {
            let _ = writeln!(text, "    {element} *{name};");
        }
        for (name, kind, _) in &self.numbers {
            let _ = writeln!(text, "    {kind} {name};");
        }
        text.push_str("    long long px_end;\n};\nstruct Now {\n");
        for (name, kind) in &self.now {
            let _ = writeln!(text, "    {kind} {name};");
        }
        text.push_str("    long long px_end;\n};\n");
        for part in &self.texts {
            text.push_str(part);
            text.push('\n');
        }
        text
    }

    /// Compiles the text and puts everything on the device.
    pub fn build(self, gpu: &Gpu) -> Result<Program> {
        let (needed, free) = (self.bytes(), gpu.free_memory()?);
        if needed > free {
            return Err(GpuError::OutOfMemory { needed, free });
        }
        let source = self.source();
        let mut run = Vec::new();
        let mut arrays: BTreeMap<String, Memory> = BTreeMap::new();
        for Array { name, bytes, data, .. } in self.arrays {
            let memory = gpu.memory(bytes)?;
            if !data.is_empty() {
                memory.write(0, &data)?;
            }
            run.push(memory.address());
            arrays.insert(name, memory);
        }
        run.extend(self.numbers.iter().map(|(_, _, bits)| bits));
        run.push(0);
        Program::new(gpu, &source, arrays, &run, self.now.len())
    }
}
