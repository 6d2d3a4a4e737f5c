//! Tells the compiler which CPython it builds for: the free-threaded one has `Py_GIL_DISABLED`.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
