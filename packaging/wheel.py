"""Builds a wheel that carries compiled kernels, so that its users compile nothing: python packaging/wheel.py [-o FOLDER]

`uv build` makes a wheel of Python files. This script adds the folder `trapline/compiled/prebuilt/IDENTITY` with one file per compiled
function, for a processor that all users of the platform have, and the tags of the platform. The wheel is for the version of
Python that runs this script. With another Python, numba, llvmlite or numpy, or on an older processor, Trapline compiles
its kernels as it does without this folder (src/trapline/compiled/kernel_files.py).
"""

import argparse
import base64
import csv
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from llvmlite import binding as llvm

from trapline.compiled.kernel_files import IDENTITY, PROCESSOR_FILE, identity, prebuilt_folder

ROOT = Path(__file__).parent.parent
# The processor to compile for, as LLVM calls it, and the features that it has beyond what every processor of the platform
# has. x86-64-v3: Intel since 2013, AMD since 2015.
BASELINES = {
    "aarch64": ("generic", ""),
    "x86_64": (
        "x86-64-v3",
        "avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe popcnt sahf sse3 sse4.1 sse4.2 ssse3 xsave",
    ),
}
Files = dict[str, bytes]  # the files of a wheel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", metavar="FOLDER", help="default: dist")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep compiled functions here for the next time")
    given = parser.parse_args()
    if platform.machine() not in BASELINES:
        sys.exit(f"no baseline processor for {platform.machine()}; add one to BASELINES in {__file__}")
    with tempfile.TemporaryDirectory() as work:
        files = plain_wheel(Path(work))
        kernels = without_paths(compiled((given.cache or Path(work) / "cache").absolute()))
    inside = prebuilt_folder(Path("trapline")).as_posix()
    files |= {f"{inside}/{name}": content for name, content in kernels.items()}
    print(write_wheel(files, given.output))


def plain_wheel(work: Path) -> Files:
    """Build the wheel of Python files and return its content."""
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", work / "dist", ROOT], check=True)
    (built,) = (work / "dist").glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(work / "content")
        files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    if identity(work / "content" / "trapline") != IDENTITY:
        sys.exit("the sources in the wheel differ from the installed ones; install Trapline from this clone: make")
    return files


def compiled(cache: Path) -> Files:
    """Compile all functions for the baseline processor, and return the files of the prebuilt folder."""
    name, needs = BASELINES[platform.machine()]
    environment = {
        **os.environ,
        "TRAPLINE_CACHE": str(cache),
        "TRAPLINE_PREBUILT": "0",
        "NUMBA_CPU_NAME": name,
        "NUMBA_CPU_FEATURES": "",
    }
    command = [sys.executable, "-c", "from trapline.cli import main; main()", "warmup"]
    subprocess.run(command, check=True, env=environment)
    kernels = {file.name: file.read_bytes() for file in sorted((cache / IDENTITY).glob("*.kernel"))}
    processor = {"triple": llvm.get_process_triple(), "name": name, "features": "", "needs": needs.split()}
    return {PROCESSOR_FILE: json.dumps(processor).encode(), **kernels}


def without_paths(kernels: Files) -> Files:
    """Leave out functions whose code contains the path of this clone: numba writes it where a function can raise an error.

    They are compiled when they are used. A wheel must not say where it was built, and the path would be wrong for its users.
    """
    telling = [name for name, content in kernels.items() if str(ROOT).encode() in content]
    if telling:
        print(f"left out, because the path of this clone is in the code: {', '.join(telling)}", file=sys.stderr)
    return {name: content for name, content in kernels.items() if name not in telling}


# ---- The archive.


def write_wheel(files: Files, folder: Path) -> Path:
    """Write the files as a wheel of this platform."""
    (info,) = {name.partition("/")[0] for name in files if name.partition("/")[0].endswith(".dist-info")}
    python, abi, platforms = tags()
    lines = [line for line in files[f"{info}/WHEEL"].decode().splitlines() if not line.startswith(("Tag:", "Root-"))]
    lines += ["Root-Is-Purelib: false", *(f"Tag: {python}-{abi}-{each}" for each in platforms)]
    files = {**files, f"{info}/WHEEL": ("\n".join(filter(None, lines)) + "\n").encode()}
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD")
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{info.removesuffix('.dist-info')}-{python}-{abi}-{'.'.join(platforms)}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)  # with the date of 1980, so that equal files make equal wheels
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return wheel


def tags() -> tuple[str, str, list[str]]:
    """Return the tags of Python, ABI and platforms: those of the installed numba, without which the kernels are of no use."""
    found = (distribution("numba").read_text("WHEEL") or "").splitlines()
    triples = [line.removeprefix("Tag: ").split("-") for line in found if line.startswith("Tag: ")]
    if not triples:
        sys.exit("numba was not installed from a wheel, so its platform is unknown; install it from PyPI")
    return triples[0][0], triples[0][1], [triple[2] for triple in triples]


def record(files: Files, own: str) -> bytes:
    """Return the list of all files with their hashes, without which pip installs no wheel."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for name, content in files.items():
        if name != own:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            writer.writerow((name, f"sha256={digest}", len(content)))
    writer.writerow((own, "", ""))
    return text.getvalue().encode()


if __name__ == "__main__":
    main()
