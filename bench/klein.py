"""The Python sides of `npm run bench -- --only today`: one call of FLUX.2 [klein]'s transformer.

`klein.py SIDE MODEL THREADS DATA [DOUBLE SINGLE]` reads the inputs from the folder DATA, writes its output there and
prints what the second call took. SIDE is torch-bfloat16, or openvino-int8 with so many blocks of either kind.
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import torch
from diffusers import Flux2Transformer2DModel
from safetensors import safe_open

EDGE, CHANNELS, TOKENS = 32, 128, 512


def load(folder, dtype, depth):
    config = json.loads((folder / "transformer/config.json").read_text())
    if depth: config["num_layers"], config["num_single_layers"] = depth
    with torch.device("meta"): model = Flux2Transformer2DModel.from_config(config)
    weights = safe_open(folder / "transformer/diffusion_pytorch_model.safetensors", "pt")
    model.load_state_dict({name: weights.get_tensor(name).to(dtype) for name in model.state_dict()}, assign=True)
    return model.eval()


def inputs(data, dtype):
    read = lambda name, *shape: torch.from_numpy(np.fromfile(data / name, np.float32).reshape(1, *shape))
    zero, places = torch.tensor([0]), torch.arange(EDGE)
    sample = read("sample", CHANNELS, EDGE * EDGE).permute(0, 2, 1).contiguous().to(dtype)
    ids = torch.cartesian_prod(zero, places, places, zero), torch.cartesian_prod(zero, zero, zero, torch.arange(TOKENS))
    return sample, read("states", TOKENS, -1).to(dtype), torch.tensor([0.5], dtype=dtype), *(each.float() for each in ids)


class Call(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, sample, states, timestep, picture, text):
        return self.model(hidden_states=sample, encoder_hidden_states=states, timestep=timestep, img_ids=picture, txt_ids=text, guidance=None, return_dict=False)[0]


def torch_bfloat16(folder, threads, data, depth):
    torch.set_num_threads(threads)
    given, call = inputs(data, torch.bfloat16), Call(load(folder, torch.bfloat16, depth))
    return lambda: call(*given).float().numpy()


def openvino_int8(folder, threads, data, depth):
    import nncf
    import openvino

    given = inputs(data, torch.float32)
    kept = folder.with_name(f"{folder.name}-openvino-{'-'.join(map(str, depth))}.xml")
    if not kept.exists():
        model = openvino.convert_model(Call(load(folder, torch.float32, depth)), example_input=given)
        model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
        openvino.save_model(model, kept, compress_to_fp16=False)
    # Of the sizes of groups that activations may be quantised in, the fastest.
    options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "128"}
    model = openvino.Core().compile_model(kept, "CPU", options)
    return lambda: model([each.numpy() for each in given])[0]


@torch.no_grad()
def main(side, folder, threads, data, *depth):
    data = Path(data)
    call = {"torch-bfloat16": torch_bfloat16, "openvino-int8": openvino_int8}[side](Path(folder), int(threads), data, [int(each) for each in depth])
    call()
    start = time.process_time()
    output = call()
    ms = 1000 * (time.process_time() - start)
    np.ascontiguousarray(output.reshape(EDGE * EDGE, CHANNELS).T).tofile(data / side)
    print(json.dumps({"ms": ms, "peakBytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


if __name__ == "__main__":
    main(*sys.argv[1:])
