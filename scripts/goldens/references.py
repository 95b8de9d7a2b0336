"""Records what diffusers draws while it looks at pictures, with the tiny models of FLUX.2 of test/golden/models.

python scripts/goldens/references.py test/golden/models test/golden/references
"""

import json
import sys
from pathlib import Path

import torch
from diffusers.pipelines.flux2.image_processor import Flux2ImageProcessor
from families import put
from PIL import Image
from safetensors.torch import save
from transformer_pictures import NEGATIVE, Recorder

SHAPES = ((64, 80), (64, 64), (96, 64), (80, 112))
# Width and height of pictures as they are sent.
SENT = ((1024, 1024), (1024, 1025), (1025, 1024), (1184, 880), (4032, 3024), (3024, 4032), (1920, 1080), (8000, 1000), (64, 64), (65, 79), (127, 511), (1600, 1200), (2048, 2048), (16384, 2048), (777, 1350))


def looked_at(width, height):
    """The size to which a picture is scaled, and that of its middle, which is looked at; as in Flux2KleinPipeline's step 4."""
    scaled = Flux2ImageProcessor._resize_if_exceeds_area(Image.new("L", (width, height)), 1024 * 1024)
    return scaled.size, tuple(edge // 16 * 16 for edge in scaled.size)


def main(models, out):
    torch.set_num_threads(1); out = Path(out); r = Recorder(Path(models))
    for count in (1, 2, 4): r.case(f"references-{count}", "flux2-klein", size=(64, 96), references=SHAPES[:count], decoded=count == 2)
    r.case("references-turned", "flux2-klein", size=(64, 96), references=SHAPES[1::-1])
    r.case("references-guided", "flux2-klein-base", size=(96, 64), references=SHAPES[:2], cfg=4.0, negative=NEGATIVE)
    r.case("references-image", "flux2-klein", size=(64, 96), references=SHAPES[:1], strength=0.75, steps=5)
    put(out / "expected.safetensors", save({k: (v.half() if v.dtype == torch.uint8 else v).contiguous() for k, v in r.arrays.items()}))
    sizes = [{"sent": sent, "scaled": scaled, "seen": seen} for sent in SENT for scaled, seen in [looked_at(*sent)]]
    for name, told in {"cases": r.cases, "sizes": sizes}.items(): (out / f"{name}.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
