//! See [`chainrule_fuzz::programs`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    chainrule_fuzz::programs::run(data);
});
