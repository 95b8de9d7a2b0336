"""decibels.py VAE [count [seed]]: how near the decoder comes to scenes from their exact latents."""
import math, random, sys
import torch
from diffusers import AutoencoderKL
from common import statistics
from fields import fields
from scenes import render, sample

torch.set_num_threads(1)
count, seed = int((sys.argv[2:] or [300])[0]), int((sys.argv[3:] or [77])[0])
vae, (mean, std), rng, errors = AutoencoderKL.from_pretrained(sys.argv[1]).eval(), statistics(), random.Random(seed), []
with torch.inference_mode():
    for _ in range(count):
        spec = [sample(rng)[1]]
        errors.append(((vae.decode((fields(spec) - mean) / std).sample.clamp(-1, 1) - render(spec)) ** 2).mean().item())
print(f"{10 * math.log10(4 * count / sum(errors)):.2f} dB of {count} scenes")
