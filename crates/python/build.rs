//! Arguments for the linker of systems that want extension modules told apart from libraries.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
