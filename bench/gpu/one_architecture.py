"""Blanks the code of other GPUs in a library of CUDA, so that it is packed into a fifth: 270 MB become 50.

`one_architecture.py LIBRARY ARCHITECTURE OUT`; the architecture is 90 for an H100 or H200, as `nvidia-smi --query-gpu=compute_cap` tells it, without the dot.
The library keeps its length and all places in it. The driver looks for code of its own GPU, and never reads the rest.
"""

import struct
import sys
from pathlib import Path

ELF, FAT_BINARY = 2, 0xBA55ED50


def sections(data):
    begin, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    all = [struct.unpack_from("<IIQQQQ", data, begin + i * size) for i in range(count)]
    for name, _, _, _, offset, length in all:
        at = all[names][4] + name
        yield bytes(data[at : data.index(0, at)]).decode(), offset, length


def blank_others(data, at, end, kept):
    """The entries of fat binaries, one after another; each has a header with its kind, size and architecture."""
    found = 0
    while at < end:
        if struct.unpack_from("<I", data, at)[0] != FAT_BINARY:
            at += 8
            continue
        header, length = struct.unpack_from("<HQ", data, at + 6)
        entry, at = at + header, at + header + length
        while entry < at:
            kind, _, skipped, size = struct.unpack_from("<HHIQ", data, entry)
            architecture, = struct.unpack_from("<I", data, entry + 28)
            begin, entry = entry + skipped, entry + skipped + size
            if kind == ELF and architecture == kept: found += 1
            else: data[begin:entry] = bytes(size)
    return found


def main(library, architecture, out):
    data = bytearray(Path(library).read_bytes())
    found = sum(blank_others(data, at, at + length, int(architecture)) for name, at, length in sections(data) if name == ".nv_fatbin")
    if found == 0: sys.exit(f"{library} has no code for the architecture {architecture}.")
    Path(out).write_bytes(data)
    print(f"{found} pieces of code are kept.")


if __name__ == "__main__":
    main(*sys.argv[1:])
