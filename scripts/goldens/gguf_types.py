"""Records a GGUF file with a tensor of each type that is read, and its values as the package gguf reads them.

python scripts/goldens/gguf_types.py test/golden/data
"""

import gzip
import sys
import tempfile
from pathlib import Path

import numpy
from gguf import GGMLQuantizationType as Type, GGUFWriter
from gguf.quants import dequantize, quantize
from safetensors.numpy import save

# Types that the package writes, and types of which it reads the blocks alone, each with where the float16 numbers of a block are.
WRITTEN = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
READ = {"Q4_K": (144, (0, 2)), "Q5_K": (176, (0, 2)), "Q6_K": (210, (208,))}
SHAPE = (3, 512)


def main(folder):
    draw = numpy.random.default_rng(1); values = {}; folder = Path(folder)
    with tempfile.TemporaryDirectory() as at:
        writer = GGUFWriter(Path(at) / "types.gguf", "qwen3"); writer.add_float32("qwen3.rope.freq_base", 1e6); writer.add_array("tokenizer.ggml.tokens", ["a", "bc"]); writer.add_array("a.list", [1, 2, 3]); writer.add_bool("a.truth", True)
        for name in (*WRITTEN, *READ):
            kind = Type[name]
            if name in WRITTEN: data = quantize(draw.standard_normal(SHAPE, dtype=numpy.float32), kind)
            else:
                size, halves = READ[name]; blocks = draw.integers(0, 256, (SHAPE[0] * SHAPE[1] // 256, size), dtype=numpy.uint8)
                for half in halves: blocks[:, half:half + 2] = draw.standard_normal((len(blocks), 1)).astype(numpy.float16).view(numpy.uint8)
                data = blocks.reshape(SHAPE[0], -1)
            values[name] = dequantize(data, kind).astype(numpy.float32).reshape(SHAPE); writer.add_tensor(name, data, raw_dtype=kind)
        writer.write_header_to_file(); writer.write_kv_data_to_file(); writer.write_tensors_to_file(); writer.close()
        (folder / "types.gguf.gz").write_bytes(gzip.compress((Path(at) / "types.gguf").read_bytes(), mtime=0))
    (folder / "gguf.safetensors.gz").write_bytes(gzip.compress(save(values), mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
