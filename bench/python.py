"""The Python side of `npm run bench`: diffusers with torch, in float32 and eager, on the model that our side draws with.

`python.py loop MODEL THREADS` denoises. It says "ready", then reads one request a line from standard input and answers
each with one line: the milliseconds of the loop, and of those the ones inside the U-Net. `python.py memory MODEL THREADS
PICTURES` draws pictures of one guided step and prints the process's largest resident memory in bytes.
"""

import json
import re
import resource
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


def memory(folder, threads, pictures):
    pipe = load(folder, threads)
    pipe("a red circle", num_inference_steps=1, num_images_per_prompt=pictures, height=512, width=512)
    print(peak_bytes())


def peak_bytes():
    """On Linux, getrusage also counts what the process that started this one had taken."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)[1]) * 1024


if __name__ == "__main__":
    {"loop": loop, "memory": memory}[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))
