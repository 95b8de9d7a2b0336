"""The Python side of `npm run bench`: diffusers with torch, in float32 and eager, on the model that our side draws with.

`python.py MODEL THREADS` says "ready", then reads one request a line from standard input and answers each with one
line: the milliseconds of the denoising loop, and of those the ones inside the U-Net.
"""

import json
import sys
import time
from pathlib import Path

import diffusers
import torch


class TimedUnet:
    """Notes when the U-Net was first called, and the time inside it."""

    def __init__(self, unet):
        self.forward = unet.forward
        unet.forward = self.call
        self.begin()

    def begin(self):
        self.first, self.run_ms = None, 0.0

    def call(self, *args, **kwargs):
        start = time.perf_counter()
        self.first = self.first or start
        output = self.forward(*args, **kwargs)
        self.run_ms += (time.perf_counter() - start) * 1000
        return output


def load(folder, threads):
    torch.set_num_threads(threads)
    diffusers.utils.logging.disable_progress_bar()
    pipe = diffusers.DiffusionPipeline.from_pretrained(folder, dtype=torch.float32)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def loop(folder, threads):
    pipe = load(folder, threads)
    unet = TimedUnet(pipe.unet)
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        unet.begin()
        generators = [torch.Generator().manual_seed(seed) for seed in range(request["batch"])]
        pipe(
            request["prompt"],
            height=request["size"],
            width=request["size"],
            num_inference_steps=request["steps"],
            guidance_scale=request["guidanceScale"],
            num_images_per_prompt=request["batch"],
            generator=generators,
            output_type="latent",
        )
        loop_ms = (time.perf_counter() - unet.first) * 1000
        print(json.dumps({"loopMs": loop_ms, "runMs": unet.run_ms}), flush=True)


if __name__ == "__main__":
    loop(Path(sys.argv[1]), int(sys.argv[2]))
