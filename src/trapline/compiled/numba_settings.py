"""The settings, version and processor with which numba would compile. As long as all settings have their defaults, numba is not imported.

numba reads its settings from variables of the environment and from a file when it is imported, and its host can change them later. If
any of these exists that matters to us, numba is asked. Otherwise its settings are the defaults of the version that Trapline is pinned to
(a test compares them with numba's).
"""

import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite import binding as llvm

Processor = tuple[str, str, str]  # as numba describes it: target triple, name, features

# The settings that change the code that numba generates, with their defaults. Those of the processor are in `processor`.
CODE_SETTINGS = {
    "OPT": "_OptLevel(3)",
    "BOUNDSCHECK": "None",
    "LOOP_VECTORIZE": "1",
    "SLP_VECTORIZE": "0",
    "USING_SVML": "False",
    "DEBUGINFO_DEFAULT": "0",
}
# Variables that set these, and those of the processor, or whether anything is compiled.
_VARIABLES = {
    f"NUMBA_{name}"
    for name in (
        *("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO", "ENABLE_PROFILING"),
        *("CPU_NAME", "CPU_FEATURES", "ENABLE_AVX", "DISABLE_JIT"),
    )
}
_FILE = ".numba_config.yaml"  # in the working directory
_SVML = {"linux": "libsvml.so", "darwin": "libsvml.dylib"}.get(sys.platform, "")  # Intel's mathematical functions
_WITHOUT_AVX = {"corei7-avx", "core-avx-i", "sandybridge", "ivybridge", "nocona"}  # numba does not use their AVX


@cache
def _have_defaults() -> bool:
    return _VARIABLES.isdisjoint(os.environ) and not os.path.exists(_FILE) and not _finds_svml()


def _finds_svml() -> bool:
    try:
        llvm.load_library_permanently(_SVML)
    except RuntimeError:
        return False
    return True


def _config() -> Any:
    """Return numba's settings; None: they are the defaults."""
    if "numba" not in sys.modules and _have_defaults():
        return None
    import numba

    return numba.config


def is_disabled() -> bool:
    """Return whether functions shall stay plain Python."""
    config = _config()
    return config is not None and bool(config.DISABLE_JIT)


def code_settings() -> dict[str, str]:
    """Return the settings that change the code, besides the processor."""
    config = _config()
    return CODE_SETTINGS if config is None else {name: str(getattr(config, name)) for name in CODE_SETTINGS}


def chooses_processor() -> bool:
    """Return whether the user has chosen a processor to compile for."""
    config = _config()
    return config is not None and bool(config.CPU_NAME or config.CPU_FEATURES)


def processor() -> Processor:
    """Return the processor that numba compiles for."""
    config, name, features = _config(), _host()[0], _host()[1]
    if config is None:
        return llvm.get_process_triple(), name, _without_avx(features) if name in _WITHOUT_AVX else features
    own = features if config.ENABLE_AVX else _without_avx(features)
    features = own if config.CPU_FEATURES is None else config.CPU_FEATURES
    return llvm.get_process_triple(), config.CPU_NAME or name, features


@cache
def _host() -> tuple[str, str]:
    try:
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # as numba does: LLVM does not know the features of this processor
        return llvm.get_host_cpu_name(), ""


def _without_avx(features: str) -> str:
    return ",".join(f"-{name[1:]}" if name.startswith("+avx") else name for name in features.split(","))


@cache
def numba_version() -> bytes:
    """Return what the installed numba says of its version."""
    spec = find_spec("numba")
    return Path(spec.origin).with_name("_version.py").read_bytes() if spec and spec.origin else b""


def llvmlite_version() -> str:
    return str(llvmlite.__version__)
