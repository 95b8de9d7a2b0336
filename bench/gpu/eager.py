"""The Python side of `npm run bench -- --gpu`: calls of diffusers' denoisers, at random weights of the same sizes.

`eager.py SIZE DEVICE` answers each line of standard input, a request in JSON, with one line of JSON.
"""

import gzip
import json
import math
import sys
import time
from pathlib import Path

import diffusers
import torch

MODELS = json.loads(gzip.decompress(Path(__file__).with_name("models.json.gz").read_bytes()))


class Side:
    def __init__(self, size, device):
        self.models, self.device = MODELS[size], torch.device(device)
        if device == "cpu": torch.set_num_threads(1)  # A dry run, on cores that others need.

    def synchronize(self):
        if self.device.type == "cuda": torch.cuda.synchronize(self.device)

    def load(self, name, tokens, compile=False):
        part = next(self.models[name][part] for part in ("unet", "transformer") if part in self.models[name])
        config = dict(part["config"])
        half = torch.float16 if name.startswith("sd") else torch.bfloat16
        self.name, self.tokens, self.config, self.dtype = name, tokens, config, half if self.device.type == "cuda" else torch.float32
        with torch.device("meta"): model = getattr(diffusers, config.pop("_class_name")).from_config(config)
        model = model.to(self.dtype).to_empty(device=self.device).eval().requires_grad_(False)
        for key, value in model.state_dict().items():
            if value.dim() > 1: value.normal_(0, 1 / math.sqrt(value[0].numel()))
            else: value.fill_(1 if key.endswith("weight") else 0)
        # Inductor takes minutes for a graph on a processor.
        backend = "inductor" if self.device.type == "cuda" else "eager"
        self.model = torch.compile(model, backend=backend, dynamic=False) if compile else model
        return {"torch": torch.__version__, "diffusers": diffusers.__version__}

    def random(self, *shape):
        return torch.randn(*shape, device=self.device, dtype=self.dtype)

    def inputs(self, rows, pixels):
        tokens, config = self.tokens, self.config
        if self.name.startswith("sd"):
            edge = pixels // 8
            given = {"sample": self.random(rows, 4, edge, edge), "timestep": torch.full((rows,), 500, device=self.device), "encoder_hidden_states": self.random(rows, tokens, config["cross_attention_dim"])}
            if self.name == "sdxl":
                width = config["projection_class_embeddings_input_dim"] - 6 * 256
                times = torch.tensor([[pixels, pixels, 0, 0, pixels, pixels]] * rows, device=self.device, dtype=self.dtype)
                given["added_cond_kwargs"] = {"text_embeds": self.random(rows, width), "time_ids": times}
            return given
        if self.name == "klein":
            edge, zero = pixels // 16, torch.tensor([0])
            ids = [torch.cartesian_prod(zero, torch.arange(edge), torch.arange(edge), zero), torch.cartesian_prod(zero, zero, zero, torch.arange(tokens))]
            image, text = (each.to(self.device) for each in ids)
            return {"hidden_states": self.random(rows, edge * edge, 128), "encoder_hidden_states": self.random(rows, tokens, config["joint_attention_dim"]), "timestep": torch.full((rows,), 0.5, device=self.device, dtype=self.dtype), "img_ids": image, "txt_ids": text, "guidance": None}
        edge = pixels // 8
        return {"x": [self.random(16, 1, edge, edge) for _ in range(rows)], "t": torch.full((rows,), 0.5, device=self.device, dtype=self.dtype), "cap_feats": [self.random(tokens, config["cap_feat_dim"]) for _ in range(rows)]}

    def call(self, rows, pixels):
        given = self.inputs(rows, pixels)
        self.synchronize()
        start = time.perf_counter()
        self.model(**given, return_dict=False)
        self.synchronize()
        return {"ms": 1000 * (time.perf_counter() - start)}

    def profile(self, rows, pixels):
        given = self.inputs(rows, pixels)
        kinds = [torch.profiler.ProfilerActivity.CUDA if self.device.type == "cuda" else torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=kinds) as profile:
            self.model(**given, return_dict=False)
            self.synchronize()
        of = lambda event: event.self_device_time_total if self.device.type == "cuda" else event.self_cpu_time_total
        events = sorted(profile.key_averages(), key=of, reverse=True)
        return {"nodes": [{"name": event.key, "count": event.count, "ms": of(event) / 1000} for event in events]}


@torch.inference_mode()
def main(size, device):
    side = Side(size, device)
    answers, sys.stdout = sys.stdout, sys.stderr  # Libraries print, too.
    for line in sys.stdin:
        request = json.loads(line)
        try: answer = getattr(side, request.pop("do"))(**request)
        except Exception as error: answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
