//! A compiled program with its memory, and sequences of its kernels.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cuda::{Event, Function, Graph, Module};
use crate::emulator::Compiled;
use crate::gpu::Backend;
use crate::{Gpu, GpuError, Memory, Result};

/// One start of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Its name.
    pub kernel: &'static str,
    /// Blocks, in two dimensions.
    pub grid: [u32; 2],
    /// Threads per block.
    pub block: u32,
    /// Bytes that the threads of a block share.
    pub shared: usize,
    /// Numbers that tell starts of the same kernel apart.
    pub x: i32,
    /// The other one.
    pub y: i32,
}

impl Launch {
    /// A thread per item, in blocks of 128.
    pub fn over(kernel: &'static str, items: usize) -> Self {
        Launch::blocks(kernel, items, 128)
    }

    /// A thread per item, in blocks of so many.
    pub fn blocks(kernel: &'static str, items: usize, block: usize) -> Self {
        let grid = [items.div_ceil(block).max(1) as u32, 1];
        Launch { kernel, grid, block: block as u32, shared: 0, x: 0, y: 0 }
    }

    /// With shared memory.
    pub fn sharing(self, shared: usize) -> Self {
        Launch { shared, ..self }
    }

    /// With its two numbers.
    pub fn with(self, x: usize, y: usize) -> Self {
        Launch { x: x as i32, y: y as i32, ..self }
    }
}

/// A program on a device.
#[derive(Debug)]
pub struct Program {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    gpu: Gpu,
    code: Code,
    arrays: BTreeMap<String, Memory>,
    run: Memory,
    now: Memory,
}

#[derive(Debug)]
enum Code {
    Cuda(Module),
    Emulator(Compiled),
}

/// A sequence of kernels, in order, to be run again and again.
#[derive(Debug)]
pub struct Recording {
    program: Arc<Inner>,
    launches: Vec<Launch>,
    graph: Option<Graph>,
}

/// A stopwatch on the device.
#[derive(Debug)]
pub struct Marks {
    program: Arc<Inner>,
    events: Vec<Event>,
}

impl Program {
    pub(crate) fn new(
        gpu: &Gpu,
        source: &str,
        arrays: BTreeMap<String, Memory>,
        run: &[u64],
        now: usize,
    ) -> Result<Self> {
        let code = match &*gpu.backend {
            Backend::Cuda(cuda) => Code::Cuda(cuda.load(source)?),
            Backend::Emulator(emulator) => Code::Emulator(emulator.load(source)?),
        };
        let block = gpu.memory(size_of_val(run))?;
        block.write(0, run)?;
        let now = gpu.memory(8 * (now + 1))?;
        Ok(Program { inner: Arc::new(Inner { gpu: gpu.clone(), code, arrays, run: block, now }) })
    }

    /// Sets the numbers that change from call to call, in their order.
    pub fn set_now(&self, bits: &[u64]) -> Result<()> {
        self.inner.now.write(0, bits)
    }

    /// An array by its name. It must be one of the layout's.
    pub fn array(&self, name: &str) -> &Memory {
        &self.inner.arrays[name]
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.inner.gpu
    }

    /// A sequence of kernels.
    pub fn record(&self, launches: &[Launch]) -> Result<Recording> {
        let program = self.inner.clone();
        let graph = match (&*program.gpu.backend, &program.code) {
            (Backend::Cuda(cuda), Code::Cuda(module)) if !launches.is_empty() => {
                let functions: Vec<Function> = launches
                    .iter()
                    .map(|launch| cuda.function(module, launch.kernel))
                    .collect::<Result<_>>()?;
                let (run, now) = (program.run.address(), program.now.address());
                let mut pairs = functions.into_iter().zip(launches);
                Some(cuda.record(|| {
                    pairs.try_for_each(|(function, launch)| cuda.launch(function, launch, run, now))
                })?)
            }
            (Backend::Emulator(emulator), Code::Emulator(code)) => {
                if let Some(launch) = launches.iter().find(|launch| !emulator.has(code, launch.kernel)) {
                    return Err(GpuError::Compile(format!("there is no kernel `{}`", launch.kernel)));
                }
                None
            }
            _ => None,
        };
        Ok(Recording { program, launches: launches.to_vec(), graph })
    }

    /// A stopwatch with so many marks.
    pub fn marks(&self, count: usize) -> Result<Marks> {
        let program = self.inner.clone();
        let events = match &*program.gpu.backend {
            Backend::Cuda(cuda) => (0..count).map(|_| cuda.event()).collect::<Result<_>>()?,
            Backend::Emulator(_) => Vec::new(),
        };
        Ok(Marks { program, events })
    }
}

impl Recording {
    /// Asks for all of it; [`Gpu::synchronize`] and [`Memory::read`] wait for it.
    pub fn run(&self) -> Result<()> {
        let Inner { gpu, code, run, now, .. } = &*self.program;
        match (&*gpu.backend, code, &self.graph) {
            (Backend::Cuda(cuda), _, Some(graph)) => cuda.replay(graph),
            (Backend::Emulator(emulator), Code::Emulator(code), _) => {
                let (run, now) = (run.address(), now.address());
                self.launches.iter().try_for_each(|launch| emulator.launch(code, launch, run, now))
            }
            _ => Ok(()),
        }
    }

    /// How many kernels it has.
    pub fn len(&self) -> usize {
        self.launches.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.launches.is_empty()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let (Backend::Cuda(cuda), Some(graph)) = (&*self.program.gpu.backend, &self.graph) {
            cuda.forget(graph);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let (Backend::Cuda(cuda), Code::Cuda(module)) = (&*self.gpu.backend, &self.code) {
            cuda.unload(module);
        }
    }
}

impl Marks {
    /// Sets mark `k` at the moment when everything asked for so far is done.
    pub fn set(&self, k: usize) -> Result<()> {
        match (&*self.program.gpu.backend, self.events.get(k)) {
            (Backend::Cuda(cuda), Some(event)) => cuda.mark(event),
            _ => Ok(()),
        }
    }

    /// Seconds from mark `k` to the next, once both have passed; 0 in an emulation.
    pub fn seconds(&self, k: usize) -> Result<f64> {
        match (&*self.program.gpu.backend, self.events.get(k), self.events.get(k + 1)) {
            (Backend::Cuda(cuda), Some(from), Some(to)) => cuda.between(from, to),
            _ => Ok(0.0),
        }
    }
}
