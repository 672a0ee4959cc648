//! See [`chainrule_fuzz::kernels`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    chainrule_fuzz::kernels::run(data);
});
