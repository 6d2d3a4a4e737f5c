"""Runs CPython's own tests of gzip with offlock's modules in place of gzip and zlib."""

from cpython import cases

from offlock import gzip, zlib

LEFT_OUT = {
    "TestGzip.test_flush_flushes_compressor": "calls a private function of the original's gzip",
    "TestGzip.test_prepend_error": "reaches for private fields of the original's reader",
    "TestCommandLine": "runs the original's command",
}

globals().update(cases("test_gzip", {"gzip": gzip, "zlib": zlib}, LEFT_OUT))
