"""Records what torch gives for test/golden/transformer-training.spec.ts: the gradients of LoRAs of the tiny models of
test/golden/models that have a transformer, and ten steps of AdamW.

python scripts/goldens/transformer_training.py test/golden/models test/golden/data/training [recording...]

peft adapts the layers of diffusers' classes, those of diffusers' training scripts or those of feed-forward layers too,
and autograd does the rest.
"""

import sys
from pathlib import Path

import torch
from diffusers import Flux2Transformer2DModel, ZImageTransformer2DModel
from peft import LoraConfig
from training import BATCH, RANK, coarse, load, record

HEIGHT, WIDTH = 6, 4
ATTENTION = ["to_q", "to_k", "to_v", "to_out.0"]
# As the scripts train_dreambooth_lora_flux2_klein.py and train_dreambooth_lora_z_image.py have them.
SINGLE = ["to_qkv_mlp_proj", *(f"single_transformer_blocks.{i}.attn.to_out" for i in range(24))]
FEED_FORWARD = ["add_q_proj", "add_k_proj", "add_v_proj", "to_add_out", "linear_in", "linear_out"]
# Of each recording the model, its class, the adapted layers, and tokens of a text.
CASES = {
    "flux2-klein": ("flux2-klein", Flux2Transformer2DModel, ATTENTION + SINGLE, 5),
    "flux2-klein-all": ("flux2-klein", Flux2Transformer2DModel, ATTENTION + SINGLE + FEED_FORWARD, 5),
    "z-image": ("z-image", ZImageTransformer2DModel, ATTENTION, 32),
    "z-image-all": ("z-image", ZImageTransformer2DModel, [*ATTENTION, "w1", "w2", "w3"], 32),
}


@torch.no_grad()
def adapt(model, layers, draw):
    """Trained values by the names of the graph's inputs."""
    model.add_adapter(LoraConfig(r=RANK, lora_alpha=RANK, target_modules=layers))
    trained = {n.replace(".default.weight", ""): p for n, p in model.named_parameters() if ".lora_" in n}
    for value in trained.values():
        value.copy_(coarse(*value.shape, draw=draw) / 16)
    return trained


def grid(*lengths):
    """The place of each token along four axes."""
    return torch.stack(torch.meshgrid(*map(torch.arange, lengths), indexing="ij"), -1).reshape(-1, 4).float()


def flux2(model, given):
    x = given["sample"].flatten(2).transpose(1, 2)
    y = model(x, given["encoder_hidden_states"], given["timestep"], grid(1, HEIGHT, WIDTH, 1), grid(1, 1, 1, 5)).sample
    return y.transpose(1, 2).reshape(given["sample"].shape)


def z_image(model, given):
    texts = [states[~padding[:, 0].bool()] for states, padding in zip(given["encoder_hidden_states"], given["is_padding"])]
    return torch.stack(model(list(given["sample"][:, :, None]), given["timestep"], texts).sample)[:, :, 0]


def inputs(model, text, draw):
    is_flux = isinstance(model, Flux2Transformer2DModel); config = model.config
    latents = (BATCH, config.in_channels, HEIGHT, WIDTH)
    states = coarse(BATCH, text, config.joint_attention_dim if is_flux else config.cap_feat_dim, draw=draw)
    given = {"sample": coarse(*latents, draw=draw), "timestep": torch.tensor([0.125, 0.8125]), "encoder_hidden_states": states, "target": coarse(*latents, draw=draw), "loss_weight": torch.tensor([1.0, 0.25])}
    if not is_flux: given["is_padding"] = torch.stack([torch.arange(text) >= own for own in (20, 7)])[:, :, None].float()
    return given


def main(models, out, chosen):
    out.mkdir(parents=True, exist_ok=True)
    for name in chosen or CASES:
        folder, kind, layers, text = CASES[name]
        draw = torch.Generator().manual_seed(7)
        model = load(kind, models / folder / "transformer")
        trained = adapt(model, layers, draw)
        given = inputs(model, text, draw)
        predict = flux2 if kind is Flux2Transformer2DModel else z_image
        record(out / f"{name}.safetensors.gz", given, trained, given, lambda: ((predict(model, given) - given["target"]) ** 2).mean((1, 2, 3)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
