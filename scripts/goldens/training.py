"""Records what torch gives for test/golden/training.spec.ts: the gradients of LoRAs and textual inversions of the tiny
models of test/golden/families, and ten steps of AdamW.

python scripts/goldens/training.py test/golden/families test/golden/data/training [recording...]

The factors are torch modules of a few lines beside the layers of diffusers' U-Net and transformers' text encoders, and
autograd does the rest.
"""

import gzip
import re
import sys
import tempfile
from pathlib import Path

import torch
from diffusers import UNet2DConditionModel
from safetensors.torch import save
from transformers import CLIPTextModel, CLIPTextModelWithProjection

RANK, BATCH, TOKENS, STEPS, RATE = 3, 2, 7, 10, 1e-3
# Of each recording the family, what is trained, the layers of the U-Net, and height and width of the latents.
CASES = {
    "sd15": ("sd15", "unet", "all", 16, 8),
    "sd21": ("sd21", "unet", "attention", 16, 16),
    "sdxl": ("sdxl", "unet", "attention", 8, 8),
    **{f"{family}-texts": (family, "texts", "attention", 8, 8) for family in ("sd15", "sd21", "sdxl")},
    **{f"{family}-word": (family, "word", "attention", 8, 8) for family in ("sd15", "sd21", "sdxl")},
}
LAYERS = {
    "attention": r"\.(to_[qkv]|to_out\.0)$",
    "all": r"\.(to_[qkv]|to_out\.0|proj_in|proj_out|ff\.net\.0\.proj|ff\.net\.2|conv1|conv2)$",
    "texts": r"\.self_attn\.([qkv]_proj|out_proj)$",
}
# Tokens of both rows, of which the word's two are in the first one and one of them in the second.
BEGIN, END, VECTORS = 774, 775, 2
IDS = {
    "texts": [[BEGIN, 320, 45, 7, END, END, END], [BEGIN, 500, 81, END, END, END, END]],
    "word": [[BEGIN, 320, 776, 777, END, END, END], [BEGIN, 777, 81, END, END, END, END]],
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


class WithWord(torch.nn.Module):
    """A table of embeddings with more rows."""

    def __init__(self, base, draw):
        super().__init__()
        self.base = base
        self.vectors = torch.nn.Parameter(coarse(VECTORS, base.weight.shape[1], draw=draw) / 4)

    def forward(self, ids):
        return torch.nn.functional.embedding(ids, torch.cat([self.base.weight, self.vectors]))


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


def load(kind, folder):
    folder = unpacked(folder)
    variant = "fp16" if any(".fp16." in file.name for file in folder.iterdir()) else None
    return kind.from_pretrained(folder, variant=variant, torch_dtype=torch.float32).requires_grad_(False).eval()


def adapt(model, pattern, draw):
    """Trained values by the names of the graph's inputs."""
    trained = {}
    for name in [n for n, _ in model.named_modules() if re.search(pattern, n)]:
        parent, leaf = name.rsplit(".", 1)
        parent = model.get_submodule(parent)
        layer = Adapted(getattr(parent, leaf), draw)
        setattr(parent, leaf, layer)
        trained[f"{name}.lora_A"], trained[f"{name}.lora_B"] = layer.a, layer.b
    return trained


class Texts:
    """The text encoders of a family as its pipeline uses them."""

    def __init__(self, folder, what, draw):
        self.is_xl = (folder / "text_encoder_2").exists()
        kinds = {"text_encoder": CLIPTextModel, **({"text_encoder_2": CLIPTextModelWithProjection} if self.is_xl else {})}
        self.encoders = {part: load(kind, folder / part) for part, kind in kinds.items()}
        self.ids, self.trained = torch.tensor(IDS[what]), {}
        # Zeros stand for no text in XL.
        self.scale = torch.tensor([1.0, 0.0]) if self.is_xl else torch.ones(BATCH)
        for part, encoder in self.encoders.items():
            if what == "word":
                table = WithWord(encoder.get_input_embeddings(), draw)
                encoder.set_input_embeddings(table)
                self.trained[f"{part}.token_vectors"] = table.vectors
            else:
                for name, value in adapt(encoder, LAYERS["texts"], draw).items():
                    # The last layer of the first encoder is not used.
                    if not (part == "text_encoder" and self.is_xl and ".layers.2." in name):
                        self.trained[f"{part}.text_model.{name.removeprefix('text_model.')}"] = value

    def given(self):
        ids = {f"{part}.input_ids": self.ids.float() for part in self.encoders}
        return {**ids, **({"text_scale": self.scale} if self.is_xl else {})}

    def __call__(self):
        outputs = [encoder(self.ids, output_hidden_states=True) for encoder in self.encoders.values()]
        if not self.is_xl:
            return {"encoder_hidden_states": outputs[0].last_hidden_state}
        states = torch.cat([output.hidden_states[-2] for output in outputs], -1) * self.scale[:, None, None]
        return {"encoder_hidden_states": states, "text_embeds": outputs[1].text_embeds * self.scale[:, None]}


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


def record(file, found, trained, given, rows):
    """Adds to what is found the trained values, the loss of each row, gradients, and the losses of steps from there."""
    found = {**found, **{k: v.detach().clone() for k, v in trained.items()}}
    loss = rows()
    (loss * given["loss_weight"]).mean().backward()
    found["loss"] = loss.detach()
    found.update({f"gradient/{k}": v.grad.clone() for k, v in trained.items()})

    parameters = list(trained.values())
    optimizer, losses = torch.optim.AdamW(parameters, lr=RATE, weight_decay=1e-2), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = rows()
        losses.append(loss.mean().item())
        (loss * given["loss_weight"]).mean().backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    found["losses"] = torch.tensor(losses)
    file.write_bytes(gzip.compress(save({k: v.contiguous() for k, v in found.items()}), 9, mtime=0))
    print(file.name, len(trained), "inputs", losses[0], losses[-1])


def main(families, out, chosen):
    out.mkdir(parents=True, exist_ok=True)
    for name in chosen or CASES:
        family, what, layers, height, width = CASES[name]
        draw = torch.Generator().manual_seed(5)
        folder = families / family / "model"
        unet = load(UNet2DConditionModel, folder / "unet")
        trained = {} if what == "word" else adapt(unet, LAYERS[layers], draw)
        given, texts = inputs(unet, height, width, draw), dict
        found = {k: v.clone() for k, v in given.items()}
        if what != "unet":
            texts = Texts(folder, what, draw)
            trained.update(texts.trained)
            found = {k: v for k, v in found.items() if k not in ("encoder_hidden_states", "text_embeds")} | texts.given()
        record(out / f"{name}.safetensors.gz", found, trained, given, lambda: rows(unet, given | texts()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
