//! The CUDA driver, loaded when it is first asked for. Everything goes through one stream, so that whatever
//! is asked for later sees what was asked for before.

use std::ffi::{CStr, CString, c_void};
use std::sync::Mutex;

use cudarc::driver::sys::{self, CUdevice_attribute, CUfunction_attribute, CUstreamCaptureMode};
use cudarc::driver::{DriverError, result};
use cudarc::nvrtc::result as nvrtc;

use crate::program::Launch;
use crate::{DeviceDescription, GpuError, Result, cache};

/// An open device.
#[derive(Debug)]
pub struct Cuda {
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    name: String,
    capability: [i32; 2],
    shared_memory: usize,
    multiprocessors: usize,
}

// SAFETY: handles of a context, a device and a stream may be used from any thread; every method makes the
// context current in the calling thread first.
unsafe impl Send for Cuda {}
// SAFETY: see above; the driver locks what it shares.
unsafe impl Sync for Cuda {}

/// A compiled program.
#[derive(Debug)]
pub struct Module(sys::CUmodule);

/// A kernel of a program.
#[derive(Debug, Clone, Copy)]
pub struct Function(sys::CUfunction);

/// A sequence of kernels.
#[derive(Debug)]
pub struct Graph(sys::CUgraphExec);

/// A moment in the stream.
#[derive(Debug)]
pub struct Event(sys::CUevent);

// SAFETY: handles, as above.
unsafe impl Send for Module {}
// SAFETY: handles, as above.
unsafe impl Sync for Module {}
// SAFETY: handles, as above.
unsafe impl Send for Function {}
// SAFETY: handles, as above.
unsafe impl Sync for Function {}
// SAFETY: handles, as above.
unsafe impl Send for Graph {}
// SAFETY: handles, as above.
unsafe impl Sync for Graph {}
// SAFETY: handles, as above.
unsafe impl Send for Event {}
// SAFETY: handles, as above.
unsafe impl Sync for Event {}

fn reason(error: DriverError) -> String {
    let words = error.error_string().map(|words| words.to_string_lossy().into_owned());
    words.unwrap_or_else(|_| format!("{error:?}"))
}

fn failed(doing: &'static str) -> impl Fn(DriverError) -> GpuError {
    move |error| GpuError::Failed { doing, reason: reason(error) }
}

fn init() -> Result<()> {
    // SAFETY: looks for the library and opens it; its initialisers are the driver's own.
    if !unsafe { sys::is_culib_present() } {
        return Err(GpuError::NoDevice(
            "no NVIDIA driver is installed here (libcuda is not found); use device = \"cpu\"".into(),
        ));
    }
    result::init().map_err(|error| {
        GpuError::NoDevice(format!(
            "the NVIDIA driver does not start: {}; use device = \"cpu\"",
            reason(error)
        ))
    })
}

/// What there is.
pub fn devices() -> Result<Vec<DeviceDescription>> {
    init()?;
    let count = result::device::get_count().map_err(failed("counting devices"))?;
    (0..count).map(|number| describe(number).map(|(_, description)| description)).collect()
}

fn describe(number: i32) -> Result<(sys::CUdevice, DeviceDescription)> {
    let doing = failed("looking at a device");
    let device = result::device::get(number).map_err(&doing)?;
    // SAFETY: `device` was just returned by the driver.
    let attribute = |which| unsafe { result::device::get_attribute(device, which) }.map_err(&doing);
    let capability = [
        attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    ];
    // SAFETY: as above.
    let memory = unsafe { result::device::total_mem(device) }.map_err(&doing)? as u64;
    let name = result::device::get_name(device).map_err(&doing)?;
    Ok((device, DeviceDescription { number: number as usize, name, memory, capability }))
}

impl Cuda {
    pub fn open(number: usize) -> Result<Self> {
        let count = devices()?.len();
        if number >= count {
            let message = format!("there is no GPU number {number}; this machine has {count}");
            return Err(GpuError::NoDevice(message));
        }
        let (device, DeviceDescription { name, capability, .. }) = describe(number as i32)?;
        let doing = failed("opening the device");
        // SAFETY: `device` is valid; the context is released when this is dropped.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(&doing)?;
        // SAFETY: the context was just retained.
        unsafe { result::ctx::set_current(context) }.map_err(&doing)?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(&doing)?;
        // SAFETY: `device` is valid.
        let attribute = |which| unsafe { result::device::get_attribute(device, which) }.map_err(&doing);
        use CUdevice_attribute as Which;
        let shared_memory = attribute(Which::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize;
        let multiprocessors = attribute(Which::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as usize;
        Ok(Cuda { device, context, stream, name, capability, shared_memory, multiprocessors })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn shared_memory(&self) -> usize {
        self.shared_memory
    }

    pub fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    fn enter(&self) -> Result<()> {
        // SAFETY: the context lives as long as this.
        unsafe { result::ctx::set_current(self.context) }.map_err(failed("entering its context"))
    }

    pub fn free_memory(&self) -> Result<u64> {
        self.enter()?;
        Ok(result::mem_get_info().map_err(failed("asking for its memory"))?.0 as u64)
    }

    /// Bytes that are all 0.
    pub fn allocate(&self, bytes: usize) -> Result<u64> {
        self.enter()?;
        // SAFETY: the size is not 0; whoever gets the address frees it.
        let address = unsafe { result::malloc_sync(bytes) }.map_err(|error| {
            let free = result::mem_get_info().map_or(0, |(free, _)| free as u64);
            match error.0 {
                sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                    GpuError::OutOfMemory { needed: bytes as u64, free }
                }
                _ => failed("allocating memory")(error),
            }
        })?;
        self.clear(address, bytes)?;
        Ok(address)
    }

    pub fn free(&self, address: u64) {
        if self.enter().is_ok() {
            // SAFETY: `address` came from `allocate` and is given back once, by the only owner.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    pub fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller owns these bytes of the device.
        unsafe { result::memset_d8_async(address, 0, bytes, self.stream) }.map_err(failed("clearing memory"))
    }

    pub fn upload(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.enter()?;
        let doing = failed("copying to it");
        // SAFETY: the caller owns so many bytes at `address`; the host's bytes stay until the copy is done.
        unsafe { result::memcpy_htod_async(address, bytes, self.stream) }.map_err(&doing)?;
        if bytes.len() > SMALL_COPY { self.synchronize() } else { Ok(()) }
    }

    pub fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller owns so many bytes at `address`; the copy is waited for below.
        unsafe { result::memcpy_dtoh_async(bytes, address, self.stream) }
            .map_err(failed("copying from it"))?;
        self.synchronize()
    }

    pub fn synchronize(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: the stream lives as long as this.
        unsafe { result::stream::synchronize(self.stream) }.map_err(failed("computing"))
    }

    /// Compiles text for this device, or finds what was compiled before.
    pub fn load(&self, text: &str) -> Result<Module> {
        let [major, minor] = self.capability;
        let ptx = compile_ptx(text, &format!("compute_{major}{minor}"))?;
        self.enter()?;
        let ptx = CString::new(ptx).map_err(|error| GpuError::Compile(error.to_string()))?;
        // SAFETY: a string that ends with 0, as the driver wants it.
        let module = unsafe { result::module::load_data(ptx.as_ptr().cast()) };
        module.map(Module).map_err(|error| GpuError::Compile(reason(error)))
    }

    /// A kernel by its name, which may use all shared memory.
    pub fn function(&self, module: &Module, name: &str) -> Result<Function> {
        self.enter()?;
        let missing = |why: String| GpuError::Compile(format!("kernel `{name}`: {why}"));
        let c_name = CString::new(name).map_err(|error| missing(error.to_string()))?;
        // SAFETY: the module lives as long as its program.
        let function = unsafe { result::module::get_function(module.0, c_name) };
        let function = function.map_err(|error| missing(reason(error)))?;
        let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function was just found.
        let set =
            unsafe { result::function::set_function_attribute(function, most, self.shared_memory as i32) };
        // A kernel with shared arrays of its own has less to give.
        let _ = set;
        Ok(Function(function))
    }

    /// Asks for a kernel.
    pub fn launch(&self, function: Function, launch: &Launch, mut run: u64, mut now: u64) -> Result<()> {
        let (mut x, mut y) = (launch.x, launch.y);
        let mut arguments: [*mut c_void; 4] =
            [(&raw mut run).cast(), (&raw mut now).cast(), (&raw mut x).cast(), (&raw mut y).cast()];
        let (grid, block) = ((launch.grid[0], launch.grid[1], 1), (launch.block, 1, 1));
        // SAFETY: every kernel of a program takes these four arguments, which the driver copies now; memory
        // behind `run` belongs to the program, which outlives its recordings.
        unsafe {
            result::launch_kernel(function.0, grid, block, launch.shared as u32, self.stream, &mut arguments)
        }
        .map_err(failed("starting a kernel"))
    }

    /// Records what `ask` asks for instead of doing it.
    pub fn record(&self, ask: impl FnOnce() -> Result<()>) -> Result<Graph> {
        self.enter()?;
        let doing = failed("recording");
        // SAFETY: the stream is ours alone.
        unsafe {
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            result::stream::begin_capture(self.stream, mode).map_err(&doing)?;
            let asked = ask();
            let graph = result::stream::end_capture(self.stream).map_err(&doing)?;
            asked?;
            let flags = sys::CUgraphInstantiate_flags(0);
            let made = result::graph::instantiate(graph, flags).map_err(&doing);
            let _ = result::graph::destroy(graph);
            made.map(Graph)
        }
    }

    pub fn replay(&self, graph: &Graph) -> Result<()> {
        self.enter()?;
        // SAFETY: the graph lives as long as its recording.
        unsafe { result::graph::launch(graph.0, self.stream) }.map_err(failed("starting kernels"))
    }

    pub fn forget(&self, graph: &Graph) {
        if self.enter().is_ok() {
            // SAFETY: called once, when the recording is dropped.
            let _ = unsafe { result::graph::exec_destroy(graph.0) };
        }
    }

    pub fn unload(&self, module: &Module) {
        if self.enter().is_ok() {
            // SAFETY: called once, when the program is dropped.
            let _ = unsafe { result::module::unload(module.0) };
        }
    }

    /// A moment that can be marked.
    pub fn event(&self) -> Result<Event> {
        self.enter()?;
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
        result::event::create(flags).map(Event).map_err(failed("making a timer"))
    }

    /// Marks the moment at which everything so far is done.
    pub fn mark(&self, event: &Event) -> Result<()> {
        self.enter()?;
        // SAFETY: event and stream are of the same context.
        unsafe { result::event::record(event.0, self.stream) }.map_err(failed("timing"))
    }

    /// Seconds between two moments that have passed.
    pub fn between(&self, from: &Event, to: &Event) -> Result<f64> {
        self.enter()?;
        // SAFETY: both were recorded and waited for.
        let milliseconds = unsafe { result::event::elapsed(from.0, to.0) }.map_err(failed("timing"))?;
        Ok(f64::from(milliseconds) * 1e-3)
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        if self.enter().is_ok() {
            // SAFETY: all memory and programs hold the device, so nothing uses the stream any more.
            unsafe {
                let _ = result::stream::destroy(self.stream);
                let _ = result::primary_ctx::release(self.device);
            }
        }
    }
}

/// Copies up to this size are staged by the driver before it returns.
const SMALL_COPY: usize = 1 << 14;

/// Whether the compiler of kernels can be loaded.
pub fn nvrtc_is_present() -> bool {
    // SAFETY: looks for the library and opens it.
    unsafe { cudarc::nvrtc::sys::is_culib_present() }
}

/// Compiles text for an architecture such as `compute_90`, without a device: no fused multiply-add beside
/// those that the text asks for.
pub fn compile_ptx(text: &str, architecture: &str) -> Result<String> {
    let options =
        vec![format!("--gpu-architecture={architecture}"), "--fmad=false".into(), "--std=c++17".into()];
    // NVRTC compiles one text at a time: who waits here for another may find its own compiled.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(ptx) = cache::find(text, &options) {
        return Ok(ptx);
    }
    if !nvrtc_is_present() {
        let message = "NVRTC is not installed here (libnvrtc is not found): it comes with CUDA, or with \
                       `pip install nvidia-cuda-nvrtc`, whose folder LD_LIBRARY_PATH must name";
        return Err(GpuError::NoDevice(message.into()));
    }
    let wrong = |error: nvrtc::NvrtcError| GpuError::Compile(error.to_string());
    let source = CString::new(text).map_err(|error| GpuError::Compile(error.to_string()))?;
    let program = nvrtc::create_program(&source, Some(c"phalanx.cu")).map_err(wrong)?;
    // SAFETY: `program` was just made, and is destroyed once, at the end.
    let ptx = unsafe {
        let compiled = nvrtc::compile_program(program, &options);
        let ptx = match compiled {
            Ok(()) => nvrtc::get_ptx(program).map_err(wrong),
            Err(error) => {
                let log = nvrtc::get_program_log(program).map(|log| words(&log));
                Err(GpuError::Compile(log.unwrap_or_else(|_| error.to_string())))
            }
        };
        let _ = nvrtc::destroy_program(program);
        words(&ptx?)
    };
    cache::keep(text, &options, &ptx);
    Ok(ptx)
}

/// The characters before the first 0.
fn words(characters: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = characters.iter().map(|&c| c as u8).collect();
    CStr::from_bytes_until_nul(&bytes).map_or_else(
        |_| String::from_utf8_lossy(&bytes).into_owned(),
        |text| text.to_string_lossy().into_owned(),
    )
}
