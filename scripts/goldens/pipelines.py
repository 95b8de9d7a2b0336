"""Records what Stable Diffusion draws with a model folder, as test/golden/pipeline.spec.ts reads it: diffusers'
schedulers and transformers' tokenizer around the folder's graphs in ONNX Runtime. It draws the cases of
<data>/pipeline.json, compares with what is recorded there and records what is not; with --record it replaces that.
A case with only_latents has no picture: one of each size, and with the strongest guidance, shows what the decoder does.

python scripts/goldens/pipelines.py test/golden/models/tiny/sd15-diffusers test/golden/data/sd15-diffusers
python scripts/goldens/pipelines.py test/golden/models/tiny/sd21-optimum test/golden/data/sd21-optimum
"""

import inspect
import json
import sys
from pathlib import Path

import diffusers
import numpy as np
import onnx
import onnxruntime
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import CLIPTokenizer

LENGTH = 77
# Numbers of a picture that is kept as an array; a larger one is a PNG.
LARGEST_ARRAY = 3 * 128 * 128
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


def read_json(file):
    return json.loads(file.read_text())


def session(file):
    graph = onnx.load(file)
    # Some folders have two nodes of one name, which ONNX Runtime refuses; nodes need no names.
    for node in graph.graph.node:
        node.name = ""
    return onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])


class Model:
    def __init__(self, folder):
        self.sessions = {part: session(folder / part / "model.onnx") for part in ("text_encoder", "unet", "vae_decoder")}
        files = [str(folder / "tokenizer" / name) for name in ("vocab.json", "merges.txt")]
        pad = read_json(folder / "tokenizer/tokenizer_config.json")["pad_token"]
        self.tokenizer = CLIPTokenizer(*files, pad_token=pad, model_max_length=LENGTH)
        self.scheduler = {k: v for k, v in read_json(folder / "scheduler/scheduler_config.json").items() if k != "_diffusers_version"}
        self.vae = read_json(folder / "vae_decoder/config.json")
        self.factor = 2 ** (len(self.vae["block_out_channels"]) - 1)

    def run(self, part, **values):
        inputs = {}
        for wanted in self.sessions[part].get_inputs():
            value = np.asarray(values[wanted.name]).astype(TYPES[wanted.type])
            inputs[wanted.name] = value[0:1].reshape(()) if wanted.name == "timestep" and not wanted.shape else value
        return torch.from_numpy(self.sessions[part].run(None, inputs)[0].astype(np.float32))

    def embedding(self, text):
        ids = self.tokenizer([text], padding="max_length", truncation=True, max_length=LENGTH, return_tensors="np").input_ids
        return self.run("text_encoder", input_ids=ids)

    def draw(self, case):
        """The final latents, and the picture, if the case has one, as [1, 3, height, width] in 0..1."""
        config = {**self.scheduler, **case.get("scheduler_config", {})}
        class_name = case.get("scheduler_class", config.pop("_class_name"))
        scheduler = getattr(diffusers, class_name).from_config(config)
        scheduler.set_timesteps(case["steps"])
        generator = torch.Generator().manual_seed(case["seed"])
        options = {"generator": generator} if "generator" in inspect.signature(scheduler.step).parameters else {}
        texts = [case["negative_prompt"] or "", case["prompt"]] if case["cfg"] > 1 else [case["prompt"]]
        states = torch.cat([self.embedding(text) for text in texts])
        shape = (1, self.vae["latent_channels"], case["height"] // self.factor, case["width"] // self.factor)
        latents = torch.randn(shape, generator=generator) * scheduler.init_noise_sigma
        for timestep in scheduler.timesteps:
            sample = scheduler.scale_model_input(torch.cat([latents] * len(texts)), timestep)
            times = np.full(len(texts), float(timestep))
            output = self.run("unet", sample=sample, timestep=times, encoder_hidden_states=states)
            if len(texts) == 2:
                unconditional, conditional = output.chunk(2)
                output = unconditional + case["cfg"] * (conditional - unconditional)
            latents = scheduler.step(output, timestep, latents, **options).prev_sample
        if case.get("only_latents"):
            return latents, None
        image = self.run("vae_decoder", latent_sample=latents / self.vae["scaling_factor"])
        return latents, (image / 2 + 0.5).clamp(0, 1)


def as_png(image, file):
    Image.fromarray((image[0].permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)).save(file)


def main(folder, data, *options):
    folder, data = Path(folder), Path(data)
    model, cases, arrays = Model(folder), read_json(data / "pipeline.json"), {}
    recorded = load_file(data / "pipeline.safetensors")
    for case in cases:
        names = [f"{case['index']}.{kind}" for kind in ("latents", "image")]
        latents, image = model.draw(case)
        if names[0] in recorded:
            print(case["index"], "latents differ by at most", (latents - recorded[names[0]]).abs().max().item())
        if names[0] in recorded and "--record" not in options:
            arrays.update({name: recorded[name] for name in names if name in recorded})
            continue
        arrays[names[0]] = latents.contiguous()
        if image is not None and image.numel() <= LARGEST_ARRAY:
            arrays[names[1]] = image.contiguous()
        elif image is not None:
            as_png(image, data / f"{case['index']}.png")
    save_file(arrays, data / "pipeline.safetensors")


main(*sys.argv[1:])
