//! Do programs do on the processor what their kernels say?

use phalanx_gpu::{Gpu, GpuError, Launch, Layout, compile_ptx, nvrtc_is_present};

/// Sums of blocks of 8, by a tree in shared memory.
const SUMS: &str = "
KERNEL(sums) {
    SHARED(double, part);
    long long i = THREAD;
    part[threadIdx.x] = i < run->count ? now->factor * run->x[i] : 0.0;
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        SYNC();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) run->sums[blockIdx.x] = part[0] + x + y;
}";

fn sums() -> Layout {
    let mut layout = Layout::default();
    layout.constant("BLOCK", 8);
    layout.array_from("x", &(0..20).map(f64::from).collect::<Vec<_>>());
    layout.array::<f64>("sums", 3);
    layout.number("count", 20);
    layout.now("factor", "double");
    layout.text(SUMS);
    layout
}

#[test]
fn threads_of_a_block_wait_for_each_other() {
    let Ok(gpu) = Gpu::emulated() else {
        return eprintln!("skipped: no C compiler");
    };
    let program = sums().build(&gpu).unwrap();
    let recording = program.record(&[Launch::blocks("sums", 20, 8).sharing(64).with(1, 2)]).unwrap();
    for factor in [1.0, 0.5] {
        program.set_now(&[f64::to_bits(factor)]).unwrap();
        recording.run().unwrap();
        let mut found = [0.0; 3];
        program.array("sums").read(0, &mut found).unwrap();
        assert_eq!(found, [28.0, 92.0, 70.0].map(|sum| factor * sum + 3.0));
    }
    assert!(matches!(program.record(&[Launch::over("nothing", 1)]), Err(GpuError::Compile(_))));
}

#[test]
fn text_that_does_not_compile_is_an_error() {
    let Ok(gpu) = Gpu::emulated() else {
        return eprintln!("skipped: no C compiler");
    };
    let mut layout = sums();
    layout.text("KERNEL(wrong) { run->nothing[0] = 1; }");
    let error = layout.build(&gpu).unwrap_err().to_string();
    assert!(error.starts_with("a kernel does not compile") && error.contains("nothing"), "{error}");
}

#[test]
fn the_same_text_is_cuda() {
    if !nvrtc_is_present() {
        return eprintln!("skipped: libnvrtc is not found");
    }
    let ptx = compile_ptx(&sums().source(), "compute_90").unwrap();
    assert!(ptx.contains(".entry sums"), "{ptx}");
}
