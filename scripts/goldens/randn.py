"""Records torch's normal noise, as test/golden/random.spec.ts reads it: several draws in a row of one generator, for
shapes below, at and above the 16 numbers that torch draws at once; and one generator with draws of several sizes.

python scripts/goldens/randn.py test/golden/data/randn
"""

import json
import sys

import torch
from safetensors.torch import save_file

SEEDS = (0, 1, 42, 1234567, 2**31, 2**32 - 1)
SHAPES = ((1,), (5,), (15,), (16,), (17,), (31,), (33,), (1, 4, 8, 8), (1, 8, 16, 16))
# The latents of Stable Diffusion at 512 x 512, drawn once and for two seeds, because they are large.
LATENTS, LATENT_SEEDS = (1, 4, 64, 64), (0, 42)
MIXED_SEED, MIXED_SIZES = 7, (3, 16, 5, 1, 20)


def record(seed, shape, draws, arrays):
    generator = torch.Generator().manual_seed(seed)
    name = f"seed{seed}_{'x'.join(map(str, shape))}"
    arrays[name] = torch.stack([torch.randn(shape, generator=generator) for _ in range(draws)])
    return {"name": name, "seed": seed, "shape": shape, "draws": draws}


def main(target):
    arrays, cases = {}, []
    for seed in SEEDS:
        cases += [record(seed, shape, 3, arrays) for shape in SHAPES]
        if seed in LATENT_SEEDS:
            cases.append(record(seed, LATENTS, 1, arrays))
    generator = torch.Generator().manual_seed(MIXED_SEED)
    for index, size in enumerate(MIXED_SIZES):
        arrays[f"mixed_{index}"] = torch.randn(size, generator=generator)
    note = "one generator, draws of these sizes in this order"
    cases.append({"name": "mixed", "seed": MIXED_SEED, "sizes": MIXED_SIZES, "note": note})
    save_file(arrays, f"{target}.safetensors")
    with open(f"{target}.json", "w") as file:
        file.write(json.dumps(cases, indent=1) + "\n")


main(sys.argv[1])
