"""Makes a model folder with the graphs of Stable Diffusion 1.5 at full size and random weights, to measure time and
memory with.

python scripts/full_size_model.py FOLDER

Its pictures show nothing. About 4.3 GB of float32, in the layout of optimum's export: a part whose weights exceed 2 GiB
holds them in a second file. The tokenizer is that of models/shapes, whose ids the text encoder knows as well. Needs
torch, diffusers, transformers and onnx, and 12 GiB of memory.
"""

import json
import shutil
import sys
from pathlib import Path

import onnx
import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel

TOKENIZER = Path(__file__).parent.parent / "models" / "shapes" / "tokenizer"
SCHEDULER = {
    "_class_name": "PNDMScheduler",
    "num_train_timesteps": 1000,
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "set_alpha_to_one": False,
    "skip_prk_steps": True,
    "steps_offset": 1,
    "trained_betas": None,
}
# The values of Stable Diffusion 1.5's own config.json files, where they are not diffusers' or transformers' defaults.
UNET = {"sample_size": 64, "cross_attention_dim": 768, "attention_head_dim": 8, "block_out_channels": (320, 640, 1280, 1280)}
VAE = {
    "block_out_channels": (128, 256, 512, 512),
    "layers_per_block": 2,
    "sample_size": 512,
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
}
TEXT = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "projection_dim": 768,
    "vocab_size": 49408,
    "hidden_act": "quick_gelu",
    "eos_token_id": 49407,
    "bos_token_id": 49406,
    "pad_token_id": 1,
}


class Unet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = UNet2DConditionModel(**UNET)

    def forward(self, sample, timestep, encoder_hidden_states):
        return self.model(sample, timestep, encoder_hidden_states, return_dict=False)[0]


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        model = AutoencoderKL(**VAE)
        self.post_quant_conv, self.decoder = model.post_quant_conv, model.decoder

    def forward(self, latent_sample):
        return self.decoder(self.post_quant_conv(latent_sample))


class TextEncoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = CLIPTextModel(CLIPTextConfig(**TEXT))

    def forward(self, input_ids):
        output = self.model(input_ids)
        return output.last_hidden_state, output.pooler_output


def export(module, values, folder, inputs, outputs, axes):
    """Writes model.onnx, and the weights into model.onnx_data beside it if one file cannot hold both."""
    folder.mkdir(parents=True)
    file = folder / "model.onnx"
    with torch.no_grad():
        torch.onnx.export(module.eval(), values, str(file), input_names=inputs, output_names=outputs, dynamic_axes=axes, opset_version=17, dynamo=False)
    parts = [path for path in folder.iterdir() if path != file]
    if not parts:
        return
    # The exporter makes a file of each weight.
    graph = onnx.load(file)
    for path in [*parts, file]:
        path.unlink()
    onnx.save_model(graph, file, save_as_external_data=True, all_tensors_to_one_file=True, location="model.onnx_data", size_threshold=1024)


def main(folder):
    torch.manual_seed(0)
    latents = {0: "batch", 2: "height", 3: "width"}
    hidden = {0: "batch", 1: "sequence"}
    rows = torch.zeros(2, 4, 64, 64), torch.tensor([1]), torch.zeros(2, 77, 768)
    axes = {"sample": latents, "timestep": {0: "steps"}, "encoder_hidden_states": hidden, "out_sample": latents}
    export(Unet(), rows, folder / "unet", ["sample", "timestep", "encoder_hidden_states"], ["out_sample"], axes)
    export(Decoder(), (torch.zeros(1, 4, 64, 64),), folder / "vae_decoder", ["latent_sample"], ["sample"], {"latent_sample": latents, "sample": latents})
    names = ["last_hidden_state", "pooler_output"]
    export(TextEncoder(), (torch.zeros(1, 77, dtype=torch.int64),), folder / "text_encoder", ["input_ids"], names, {"input_ids": hidden, "last_hidden_state": hidden, "pooler_output": {0: "batch"}})
    shutil.copytree(TOKENIZER, folder / "tokenizer")
    (folder / "scheduler").mkdir()
    (folder / "scheduler/scheduler_config.json").write_text(json.dumps(SCHEDULER, indent=2) + "\n")
    (folder / "vae_decoder/config.json").write_text(json.dumps({"_class_name": "AutoencoderKL", "scaling_factor": 0.18215, **VAE}, indent=2) + "\n")
    (folder / "unet/config.json").write_text(json.dumps({"_class_name": "UNet2DConditionModel", "in_channels": 4, **UNET}, indent=2) + "\n")
    (folder / "model_index.json").write_text(json.dumps({"_class_name": "OnnxStableDiffusionPipeline"}, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
