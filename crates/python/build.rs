//! Linker arguments for systems that distinguish extension modules from libraries.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
