"""The parts of the bundled model, in Stable Diffusion's own layout at a small size."""
import os
from pathlib import Path
import torch
from torch import nn
import torch.nn.functional as F

OUT = Path(os.environ.get("SHAPES_OUT", "out"))
OUT.mkdir(parents=True, exist_ok=True)
LATENT_CHANNELS, DOWN = 22, 32
BETAS = dict(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", num_train_timesteps=1000)


def unet_model():
    from diffusers import UNet2DConditionModel
    return UNet2DConditionModel(
        sample_size=16, in_channels=LATENT_CHANNELS, out_channels=LATENT_CHANNELS, layers_per_block=1, block_out_channels=(64, 128, 160),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=128, attention_head_dim=4, norm_num_groups=16)


def text_model(vocab_size):
    from transformers import CLIPTextConfig, CLIPTextModel
    return CLIPTextModel(CLIPTextConfig(
        vocab_size=vocab_size, hidden_size=128, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4,
        max_position_embeddings=77, projection_dim=128, hidden_act="quick_gelu",
        bos_token_id=vocab_size - 2, eos_token_id=vocab_size - 1, pad_token_id=vocab_size - 1))


class EMA:
    def __init__(self, params, decay=0.999):
        self.params, self.decay, self.n = list(params), decay, 0
        self.shadow = [p.detach().clone() for p in self.params]

    @torch.no_grad()
    def update(self):
        self.n += 1
        d = min(self.decay, (1 + self.n) / (10 + self.n))
        torch._foreach_mul_(self.shadow, d)
        torch._foreach_add_(self.shadow, [p.detach() for p in self.params], alpha=1 - d)

    @torch.no_grad()
    def copy_to(self):
        for p, s in zip(self.params, self.shadow):
            p.copy_(s)


POLAR = [(8.28721201814563, -23.595886519098837, 17.300387312530933), (4.107059111542203, -2.9478499167379106, 0.5448431082926601), (3.9486908534822946, -2.908902115962949, 0.5518191394370137), (3.3184196573706015, -2.488488024314874, 0.51004894012372), (2.300652019954817, -1.6689039845747493, 0.4188073119525673)]


def polar(X, rounds):
    """X: (..., a, b), a <= b, of a norm below 1 -> roughly the nearest matrices with orthogonal rows (Polar Express)"""
    for a, b, c in POLAR[:rounds]: A = X @ X.mT; X = a * X + (b * A + c * (A @ A)) @ X
    return X
