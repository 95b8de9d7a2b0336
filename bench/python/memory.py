"""Draws pictures of one guided step with the graphs of a model folder, and prints the process's largest resident memory
in bytes.

Called by the section `memory` of `npm run bench` with a model folder, a number of threads and a number of pictures. As
Python's pipelines do, it holds all three sessions and calls the U-Net with every row at once. Needs onnxruntime and
numpy.
"""

import json
import re
import resource
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort

NUMPY_TYPES = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}


def peak_bytes():
    """On Linux, getrusage also counts what the process that started this one had taken."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)[1]) * 1024


def main(folder, threads, pictures):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    sessions = {part: ort.InferenceSession(str(folder / part / "model.onnx"), options, providers=["CPUExecutionProvider"]) for part in ("text_encoder", "unet", "vae_decoder")}
    unet = sessions["unet"]
    types = {value.name: NUMPY_TYPES[value.type] for value in unet.get_inputs()}
    ids_type = NUMPY_TYPES[sessions["text_encoder"].get_inputs()[0].type]
    embeddings = sessions["text_encoder"].run(None, {"input_ids": np.zeros((2, 77), ids_type)})[0]
    channels = json.loads((folder / "unet" / "config.json").read_text())["in_channels"]
    down = 2 ** (len(json.loads((folder / "vae_decoder" / "config.json").read_text())["block_out_channels"]) - 1)
    side = 512 // down
    noise = np.random.default_rng(0).standard_normal((pictures, channels, side, side), np.float32)
    rows = np.concatenate([noise, noise])
    feeds = {"sample": rows, "timestep": np.array([999], types["timestep"]), "encoder_hidden_states": np.repeat(embeddings, pictures, axis=0)}
    unconditional, conditional = np.split(unet.run(None, feeds)[0], 2)
    latents = noise - (unconditional + 7.5 * (conditional - unconditional))
    for index in range(pictures):
        sessions["vae_decoder"].run(None, {"latent_sample": latents[index : index + 1]})
    print(peak_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
