"""Records what torch gives for test/golden/training.spec.ts: the gradients of LoRAs of the tiny models of
test/golden/families, and ten steps of AdamW.

python scripts/goldens/training.py test/golden/families test/golden/data/training [family...]

The factors are torch modules of a few lines beside the layers of diffusers' U-Net, and autograd does the rest.
"""

import gzip
import re
import sys
import tempfile
from pathlib import Path

import torch
from diffusers import UNet2DConditionModel
from safetensors.torch import save

RANK, BATCH, TOKENS, STEPS, RATE = 3, 2, 7, 10, 1e-3
# Of each family the layers that are trained, and height and width of the latents.
CASES = {"sd15": ("all", 16, 8), "sd21": ("attention", 16, 16), "sdxl": ("attention", 8, 8)}
LAYERS = {
    "attention": r"\.(to_[qkv]|to_out\.0)$",
    "all": r"\.(to_[qkv]|to_out\.0|proj_in|proj_out|ff\.net\.0\.proj|ff\.net\.2|conv1|conv2)$",
}


class Adapted(torch.nn.Module):
    def __init__(self, base, draw):
        super().__init__()
        self.base, weight = base, base.weight
        self.a = torch.nn.Parameter(coarse(RANK, *weight.shape[1:], draw=draw) / 16)
        self.b = torch.nn.Parameter(coarse(weight.shape[0], RANK, draw=draw) / 16)

    def forward(self, x):
        if isinstance(self.base, torch.nn.Conv2d):
            low = torch.nn.functional.conv2d(x, self.a, None, self.base.stride, self.base.padding)
            return self.base(x) + torch.nn.functional.conv2d(low, self.b[:, :, None, None])
        return self.base(x) + x @ self.a.T @ self.b.T


def coarse(*shape, draw):
    """Normal numbers of few digits, which compress."""
    return (torch.randn(*shape, generator=draw) * 4).round() / 4


def unpacked(folder):
    """A part's folder as diffusers reads it."""
    to = Path(tempfile.mkdtemp())
    for file in folder.iterdir():
        data = file.read_bytes()
        (to / file.name.removesuffix(".gz")).write_bytes(gzip.decompress(data) if file.suffix == ".gz" else data)
    return to


def adapt(unet, pattern, draw):
    adapted = {}
    for name in [n for n, _ in unet.named_modules() if re.search(pattern, n)]:
        parent, leaf = name.rsplit(".", 1)
        parent = unet.get_submodule(parent)
        layer = Adapted(getattr(parent, leaf), draw)
        setattr(parent, leaf, layer)
        adapted[name] = layer
    return adapted


def inputs(unet, height, width, draw):
    config = unet.config
    latents = (BATCH, config.in_channels, height, width)
    given = {
        "sample": coarse(*latents, draw=draw),
        "timestep": torch.tensor([7.0, 801.0]),
        "encoder_hidden_states": coarse(BATCH, TOKENS, config.cross_attention_dim, draw=draw),
        "target": coarse(*latents, draw=draw),
        "loss_weight": torch.tensor([1.0, 0.25]),
    }
    if config.addition_embed_type:
        pooled = config.projection_class_embeddings_input_dim - 6 * config.addition_time_embed_dim
        given["text_embeds"] = coarse(BATCH, pooled, draw=draw)
        given["time_ids"] = torch.tensor([[64.0, 48, 0, 0, 64, 48]] * BATCH)
    return given


def rows(unet, given):
    """The loss of each row."""
    added = {k: given[k] for k in ("text_embeds", "time_ids") if k in given}
    output = unet(given["sample"], given["timestep"], given["encoder_hidden_states"], added_cond_kwargs=added or None).sample
    return ((output - given["target"]) ** 2).mean((1, 2, 3))


def main(families, out, chosen):
    out.mkdir(parents=True, exist_ok=True)
    for family in chosen or CASES:
        layers, height, width = CASES[family]
        draw = torch.Generator().manual_seed(5)
        folder = unpacked(families / family / "model" / "unet")
        variant = "fp16" if any(".fp16." in file.name for file in folder.iterdir()) else None
        unet = UNet2DConditionModel.from_pretrained(folder, variant=variant, torch_dtype=torch.float32).requires_grad_(False).eval()
        adapted = adapt(unet, LAYERS[layers], draw)
        given = inputs(unet, height, width, draw)
        found = {k: v.clone() for k, v in given.items()}
        for name, layer in adapted.items():
            found[f"{name}.lora_A"], found[f"{name}.lora_B"] = layer.a.detach().clone(), layer.b.detach().clone()
        loss = rows(unet, given)
        (loss * given["loss_weight"]).mean().backward()
        found["loss"] = loss.detach()
        for name, layer in adapted.items():
            found[f"gradient/{name}.lora_A"], found[f"gradient/{name}.lora_B"] = layer.a.grad.clone(), layer.b.grad.clone()

        parameters = [p for layer in adapted.values() for p in (layer.a, layer.b)]
        optimizer, losses = torch.optim.AdamW(parameters, lr=RATE, weight_decay=1e-2), []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = rows(unet, given)
            losses.append(loss.mean().item())
            (loss * given["loss_weight"]).mean().backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
        found["losses"] = torch.tensor(losses)
        (out / f"{family}.safetensors.gz").write_bytes(gzip.compress(save({k: v.contiguous() for k, v in found.items()}), 9, mtime=0))
        print(family, len(adapted), "layers", losses[0], losses[-1])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
