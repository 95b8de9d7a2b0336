"""Makes the tiny distilled model of test/golden/models/tiny/lcm, and its U-Net in int8, and records what diffusers
draws with it and with sd-turbo's layout.

python scripts/goldens/fast_models.py test/golden

Needs diffusers, transformers, peft, torch, onnx, onnxruntime and safetensors. The text encoder and the tokenizer are
those of test/golden/models/tiny/sd15-diffusers; the weights of the U-Net are random.
"""

import json
import sys
from pathlib import Path

import diffusers
import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.torch import save_file
from transformers import CLIPTokenizer

PROMPT, NEGATIVE = "a red circle", "gray"
SIZE = 64
TRAINED = {"num_train_timesteps": 1000, "beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
LCM = {**TRAINED, "_class_name": "LCMScheduler", "steps_offset": 1, "clip_sample": False, "original_inference_steps": 50}
TURBO = {**TRAINED, "_class_name": "EulerDiscreteScheduler", "prediction_type": "epsilon", "timestep_spacing": "trailing", "steps_offset": 1}
UNET = {
    "sample_size": 8,
    "in_channels": 4,
    "out_channels": 4,
    "block_out_channels": (8, 16),
    "layers_per_block": 1,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    "cross_attention_dim": 32,
    "attention_head_dim": 4,
    "norm_num_groups": 4,
    "time_cond_proj_dim": 16,
}


def make_unet():
    torch.manual_seed(0)
    unet = diffusers.UNet2DConditionModel(**UNET).eval()
    with torch.no_grad():
        for weight in unet.parameters():
            if weight.dim() > 1:
                weight.mul_(1.5)
    return unet


def export(unet, folder):
    folder.mkdir(parents=True, exist_ok=True)
    values = (torch.randn(2, 4, 8, 8), torch.tensor([1.0, 2.0]), torch.randn(2, 77, 32), torch.randn(2, 16))
    names = ["sample", "timestep", "encoder_hidden_states", "timestep_cond"]

    class Graph(torch.nn.Module):
        def __init__(self):
            super().__init__()
            # The modules themselves, so that names of nodes and weights are those of the state dict.
            for name, child in unet.named_children():
                self.add_module(name, child)

        def forward(self, sample, timestep, encoder_hidden_states, timestep_cond):
            return unet(sample, timestep, encoder_hidden_states, timestep_cond=timestep_cond, return_dict=False)[0]

    axes = {"sample": {0: "batch", 2: "height", 3: "width"}, "timestep": {0: "batch"}, "encoder_hidden_states": {0: "batch", 1: "sequence"}, "timestep_cond": {0: "batch"}, "out_sample": {0: "batch", 2: "height", 3: "width"}}
    torch.onnx.export(Graph(), values, folder / "model.onnx", input_names=names, output_names=["out_sample"], dynamic_axes=axes, opset_version=17, dynamo=False)
    (folder / "config.json").write_text(json.dumps({**UNET, "_class_name": "UNet2DConditionModel"}, indent=2) + "\n")


def open_graph(path):
    model = onnx.load(path)
    # Two nodes of an export may have one name, which ONNX Runtime rejects.
    for index, node in enumerate(model.graph.node):
        node.name = str(index)
    return onnxruntime.InferenceSession(model.SerializeToString())


def embed(base, texts):
    tokenizer = CLIPTokenizer.from_pretrained(base / "tokenizer")
    ids = tokenizer(texts, padding="max_length", max_length=77, truncation=True, return_tensors="np").input_ids
    session = open_graph(base / "text_encoder" / "model.onnx")
    return torch.from_numpy(session.run(["last_hidden_state"], {"input_ids": ids.astype(np.int32)})[0])


def lora():
    """A LoRA with the layers of LCM-LoRA in kohya's names, and its rank and alpha."""
    generator = torch.Generator().manual_seed(7)
    tensors = {}
    kinds = ("to_q", "to_k", "to_v", "to_out.0", "proj_in", "proj_out", "ff.net.0.proj", "ff.net.2", "conv1", "conv2", "conv_shortcut", "downsamplers.0.conv", "upsamplers.0.conv", "time_emb_proj")
    for name, module in make_unet().named_modules():
        if not name.endswith(kinds) or not hasattr(module, "weight"):
            continue
        out, *inputs = module.weight.shape
        key = "lora_unet_" + name.replace(".", "_")
        tensors[f"{key}.lora_down.weight"] = torch.randn((2, *inputs), generator=generator) * 0.2
        tensors[f"{key}.lora_up.weight"] = torch.randn((out, 2, *([1] * (len(inputs) - 1))), generator=generator) * 0.2
        tensors[f"{key}.alpha"] = torch.tensor(1.0)
    return {key: value.to(torch.float16).contiguous() for key, value in tensors.items()}


def draw_lcm(unet, embeddings, run, weights=None):
    vae = diffusers.AutoencoderKL(block_out_channels=(4, 4, 4, 4), down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, norm_num_groups=2)
    scheduler = diffusers.LCMScheduler.from_config(LCM)
    parts = {"vae": vae, "text_encoder": None, "tokenizer": None, "unet": unet, "scheduler": scheduler, "safety_checker": None, "feature_extractor": None}
    pipe = diffusers.LatentConsistencyModelPipeline(**parts, requires_safety_checker=False)
    pipe.set_progress_bar_config(disable=True)
    if weights:
        pipe.load_lora_weights(dict(weights))
    latents = pipe(prompt_embeds=embeddings, height=SIZE, width=SIZE, num_inference_steps=run["steps"], guidance_scale=run["cfg"], generator=torch.Generator().manual_seed(run["seed"]), output_type="latent").images
    return latents[0].detach()


def draw_turbo(base, embeddings, run):
    scheduler = diffusers.EulerDiscreteScheduler.from_config(TURBO)
    scheduler.set_timesteps(run["steps"])
    session = open_graph(base / "unet" / "model.onnx")
    latents = torch.randn((1, 4, SIZE // 8, SIZE // 8), generator=torch.Generator().manual_seed(run["seed"]))
    latents = latents * scheduler.init_noise_sigma
    timestep_type = np.int64 if "int64" in session.get_inputs()[1].type else np.float32
    for timestep in scheduler.timesteps:
        feeds = {"sample": scheduler.scale_model_input(latents, timestep).numpy(), "timestep": np.array([timestep], timestep_type), "encoder_hidden_states": embeddings.numpy()}
        latents = scheduler.step(torch.from_numpy(session.run(None, feeds)[0]), timestep, latents).prev_sample
    return latents[0]


def main(golden):
    base, lcm, data = golden / "models/tiny/sd15-diffusers", golden / "models/tiny/lcm", golden / "data"
    unet = make_unet()
    (lcm / "scheduler").mkdir(parents=True, exist_ok=True)
    (lcm / "scheduler/scheduler_config.json").write_text(json.dumps(LCM, indent=2) + "\n")
    (lcm / "model_index.json").write_text(json.dumps({"_class_name": "LatentConsistencyModelPipeline"}, indent=2) + "\n")
    save_file(lora(), golden / "models/lora/lcm-kohya.safetensors")
    prompt = embed(base, [PROMPT])
    runs, arrays = [], {}
    for steps, cfg in ((1, 1.0), (4, 8.5), (8, 2.0)):
        runs.append({"model": "lcm", "steps": steps, "cfg": cfg, "seed": 5})
        arrays[f"{len(runs) - 1}.latents"] = draw_lcm(unet, prompt, runs[-1])
    runs.append({"model": "lcm-lora", "steps": 4, "cfg": 2.0, "seed": 6})
    arrays[f"{len(runs) - 1}.latents"] = draw_lcm(make_unet(), prompt, runs[-1], lora())
    for steps in (1, 4):
        runs.append({"model": "turbo", "steps": steps, "cfg": 1.0, "seed": 7, "scheduler": TURBO})
        arrays[f"{len(runs) - 1}.latents"] = draw_turbo(base, prompt, runs[-1])
    export(unet, lcm / "unet")
    int8 = golden / "models/tiny/lcm-int8/unet"
    int8.mkdir(parents=True, exist_ok=True)
    quantize_dynamic(lcm / "unet/model.onnx", int8 / "model.onnx", weight_type=QuantType.QUInt8)
    save_file({key: value.contiguous() for key, value in arrays.items()}, data / "fast-models.safetensors")
    for run in runs:
        run.update({"prompt": PROMPT, "size": SIZE})
    (data / "fast-models.json").write_text(json.dumps(runs, indent=1) + "\n")
    for key, value in arrays.items():
        print(key, tuple(value.shape), float(value.abs().max()))


with torch.no_grad():
    main(Path(sys.argv[1]))
