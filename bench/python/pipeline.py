"""Denoises with diffusers' scheduler over onnxruntime on the files that bench/pipeline draws with.

Called by bench/pipeline with a model folder and a number of threads. Says "ready", then reads one request a line from
standard input and answers each with one line: the milliseconds of the loop, and of those the ones inside onnxruntime.
Needs a virtual environment with onnxruntime, torch and diffusers.
"""

import json
import sys
import time
from pathlib import Path

import diffusers
import numpy as np
import onnxruntime as ort
import torch

NUMPY_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}


class Graph:
    """One session, with the time that was spent in it."""

    def __init__(self, path, threads):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name: value for value in self.session.get_inputs()}
        self.run_ms = 0.0

    def run(self, **feeds):
        feeds = {name: array.astype(NUMPY_TYPES[self.inputs[name].type], copy=False) for name, array in feeds.items()}
        start = time.perf_counter()
        output = self.session.run(None, feeds)[0]
        self.run_ms += (time.perf_counter() - start) * 1000
        return output


def load_scheduler(folder):
    name = json.loads((folder / "scheduler" / "scheduler_config.json").read_text())["_class_name"]
    return getattr(diffusers, name).from_pretrained(folder, subfolder="scheduler")


def denoise(unet, scheduler, channels, embeds, request):
    """The loop of diffusers' StableDiffusionPipeline, guidance included; milliseconds in all and inside onnxruntime."""
    batch, size, scale = request["batch"], request["size"], request["guidanceScale"]
    generators = [torch.Generator().manual_seed(seed) for seed in range(batch)]
    noise = [torch.randn((1, channels, size, size), generator=generator) for generator in generators]
    prompt_embeds = np.repeat(embeds, batch, axis=0)
    timestep = unet.inputs["timestep"]
    scheduler.set_timesteps(request["steps"])
    latents = torch.cat(noise) * scheduler.init_noise_sigma
    unet.run_ms = 0.0
    start = time.perf_counter()
    for t in scheduler.timesteps:
        sample = scheduler.scale_model_input(torch.cat([latents] * 2), t)
        count = () if len(timestep.shape) == 0 else (2 * batch if timestep.shape == ["batch"] else 1,)
        out = unet.run(
            sample=sample.numpy(), timestep=np.full(count, t.item()), encoder_hidden_states=prompt_embeds
        )
        uncond, cond = torch.from_numpy(out.astype(np.float32, copy=False)).chunk(2)
        latents = scheduler.step(uncond + scale * (cond - uncond), t, latents).prev_sample
    return {"loopMs": (time.perf_counter() - start) * 1000, "runMs": unet.run_ms}


def main(folder, threads):
    torch.set_num_threads(threads)
    text_encoder = Graph(folder / "text_encoder" / "model.onnx", threads)
    unet = Graph(folder / "unet" / "model.onnx", threads)
    scheduler = load_scheduler(folder)
    channels = json.loads((folder / "unet" / "config.json").read_text())["in_channels"]
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        embeds = text_encoder.run(input_ids=np.array(request["inputIds"]))
        with torch.no_grad():
            print(json.dumps(denoise(unet, scheduler, channels, embeds, request)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
