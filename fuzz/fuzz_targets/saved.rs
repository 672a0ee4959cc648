//! See [`chainrule_fuzz::saved`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| chainrule_fuzz::saved::run(data));
