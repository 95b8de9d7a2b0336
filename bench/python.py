"""The Python side of `npm run bench`, over onnxruntime on the graphs that our side draws with.

`python.py loop MODEL THREADS` denoises with diffusers' scheduler. It says "ready", then reads one request a line from
standard input and answers each with one line: the milliseconds of the loop, and of those the ones inside onnxruntime. It
needs torch and diffusers. `python.py memory MODEL THREADS PICTURES` draws pictures of one guided step, with all three
sessions and every row in one call, and prints the process's largest resident memory in bytes.
"""

import json
import re
import resource
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort

NUMPY_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}


class Graph:
    """One session, with the time that was spent in it."""

    def __init__(self, folder, part, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = ort.InferenceSession(str(folder / part / "model.onnx"), options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name: value for value in self.session.get_inputs()}
        self.run_ms = 0.0

    def run(self, **feeds):
        feeds = {name: array.astype(NUMPY_TYPES[self.inputs[name].type], copy=False) for name, array in feeds.items()}
        start = time.perf_counter()
        output = self.session.run(None, feeds)[0]
        self.run_ms += (time.perf_counter() - start) * 1000
        return output

    def timestep(self, t, rows):
        """One for each row, or one for all where the graph takes no more."""
        shape = self.inputs["timestep"].shape
        return np.full(() if len(shape) == 0 else (rows if shape == ["batch"] else 1,), t)


def latents_shape(folder, size=512):
    channels = json.loads((folder / "unet" / "config.json").read_text())["in_channels"]
    levels = len(json.loads((folder / "vae_decoder" / "config.json").read_text())["block_out_channels"])
    return channels, size >> (levels - 1), size >> (levels - 1)


def loop(folder, threads):
    import diffusers
    import torch

    torch.set_num_threads(threads)
    text_encoder, unet = Graph(folder, "text_encoder", threads), Graph(folder, "unet", threads)
    name = json.loads((folder / "scheduler" / "scheduler_config.json").read_text())["_class_name"]
    scheduler = getattr(diffusers, name).from_pretrained(folder, subfolder="scheduler")
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        batch, scale = request["batch"], request["guidanceScale"]
        embeds = np.repeat(text_encoder.run(input_ids=np.array(request["inputIds"])), batch, axis=0)
        generators = [torch.Generator().manual_seed(seed) for seed in range(batch)]
        noise = [torch.randn((1, *latents_shape(folder, request["size"])), generator=generator) for generator in generators]
        scheduler.set_timesteps(request["steps"])
        latents = torch.cat(noise) * scheduler.init_noise_sigma
        unet.run_ms, start = 0.0, time.perf_counter()
        for t in scheduler.timesteps:
            sample = scheduler.scale_model_input(torch.cat([latents] * 2), t)
            out = unet.run(sample=sample.numpy(), timestep=unet.timestep(t.item(), 2 * batch), encoder_hidden_states=embeds)
            uncond, cond = torch.from_numpy(out.astype(np.float32, copy=False)).chunk(2)
            latents = scheduler.step(uncond + scale * (cond - uncond), t, latents).prev_sample
        print(json.dumps({"loopMs": (time.perf_counter() - start) * 1000, "runMs": unet.run_ms}), flush=True)


def memory(folder, threads, pictures):
    text_encoder, unet, vae_decoder = (Graph(folder, part, threads) for part in ("text_encoder", "unet", "vae_decoder"))
    embeds = np.repeat(text_encoder.run(input_ids=np.zeros((2, 77))), pictures, axis=0)
    noise = np.random.default_rng(0).standard_normal((pictures, *latents_shape(folder)), np.float32)
    out = unet.run(sample=np.concatenate([noise, noise]), timestep=unet.timestep(999, 2 * pictures), encoder_hidden_states=embeds)
    uncond, cond = np.split(out, 2)
    latents = noise - (uncond + 7.5 * (cond - uncond))
    for index in range(pictures):
        vae_decoder.run(latent_sample=latents[index : index + 1])
    print(peak_bytes())


def peak_bytes():
    """On Linux, getrusage also counts what the process that started this one had taken."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)[1]) * 1024


if __name__ == "__main__":
    {"loop": loop, "memory": memory}[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))
