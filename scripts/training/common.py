"""The parts of the bundled model, in Stable Diffusion's own layout at a small size, and what the programs share."""
import os
from pathlib import Path
import torch
from diffusers import AutoencoderKL, DDIMScheduler, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer
from scenes import SIZE

OUT = Path(os.environ.get("SHAPES_OUT", "parts"))
OUT.mkdir(parents=True, exist_ok=True)
LATENT_CHANNELS, CELL = 22, 32
BETAS = dict(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", num_train_timesteps=1000)
SCHEDULE = dict(BETAS, steps_offset=1, set_alpha_to_one=False, skip_prk_steps=True, clip_sample=False, prediction_type="v_prediction")   # what SD 2.1's scheduler_config.json says

# Of the decoder: constants that fix the scale of its norms, and their channels; the channel of each field behind
# conv_in, where the fields 0-2 are the ground as noise leaves it and the channels 0-2 the ground that is drawn.
A, HI, LO = 30.0, 14, 15
AT = [25, 26, 27, *range(3, 13), 23, 24, 22, *range(16, 22)]


def unet_model():
    return UNet2DConditionModel(
        sample_size=16, in_channels=LATENT_CHANNELS, out_channels=LATENT_CHANNELS, layers_per_block=1, block_out_channels=(64, 128, 160),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=128, attention_head_dim=4, norm_num_groups=16)


def text_model(vocab_size):
    return CLIPTextModel(CLIPTextConfig(
        vocab_size=vocab_size, hidden_size=128, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4,
        max_position_embeddings=77, projection_dim=128, hidden_act="quick_gelu",
        bos_token_id=vocab_size - 2, eos_token_id=vocab_size - 1, pad_token_id=vocab_size - 1))


def vae_model():
    return AutoencoderKL(
        in_channels=3, out_channels=3, down_block_types=["DownEncoderBlock2D"] * 6, up_block_types=["UpDecoderBlock2D"] * 6,
        block_out_channels=[16, 24, 32, 64, 96, 128], layers_per_block=1, latent_channels=LATENT_CHANNELS, norm_num_groups=1,
        sample_size=512, scaling_factor=1.0)


def tokenizer():
    return CLIPTokenizer(str(OUT / "tokenizer/vocab.json"), str(OUT / "tokenizer/merges.txt"), model_max_length=77)


def ids_of(tok, captions):
    return tok(captions, padding="max_length", truncation=True, max_length=77, return_tensors="pt").input_ids


def parts(folder=OUT):
    """-> U-Net, text encoder, tokenizer; what folder lacks is taken from OUT."""
    unet, text = ((folder if (folder / name).exists() else OUT) / name for name in ("unet", "text_encoder"))
    return UNet2DConditionModel.from_pretrained(unet).eval().to(memory_format=torch.channels_last), CLIPTextModel.from_pretrained(text).eval(), tokenizer()


def statistics():
    """Mean and standard deviation of the fields, (1, 22, 1, 1) each: latents are (fields - mean) / deviation."""
    return (v.view(1, -1, 1, 1) for v in torch.load(OUT / "fields_stats.pt"))


def half_weights(module):
    """Rounds weights to what the model's files hold."""
    with torch.no_grad():
        for p in module.parameters():
            if p.numel() >= 1024: p.copy_(p.half().float())


@torch.inference_mode()
def sample_latents(unet, text, tok, captions, noise, cfg, steps):
    """noise: (n, 22, height / 32, width / 32); cfg: one for all, or one for each -> latents, sampled as the service does with `ddim`"""
    s = DDIMScheduler.from_config(SCHEDULE); s.set_timesteps(steps); x = noise
    e = text(ids_of(tok, [""] * len(captions) + captions)).last_hidden_state
    w = torch.as_tensor(cfg, dtype=torch.float32).view(-1, 1, 1, 1)
    for t in s.timesteps:
        u, c = unet(torch.cat([x, x]).contiguous(memory_format=torch.channels_last), t.expand(2 * len(x)), e).sample.chunk(2)
        x = s.step(u + w * (c - u), t, x).prev_sample
    return x.contiguous()


class EMA:
    """A running mean of parameters."""
    def __init__(self, params, decay):
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
        for p, s in zip(self.params, self.shadow): p.copy_(s)


POLAR = [(8.28721201814563, -23.595886519098837, 17.300387312530933), (4.107059111542203, -2.9478499167379106, 0.5448431082926601), (3.9486908534822946, -2.908902115962949, 0.5518191394370137), (3.3184196573706015, -2.488488024314874, 0.51004894012372), (2.300652019954817, -1.6689039845747493, 0.4188073119525673)]


def polar(X, rounds):
    """X: (..., a, b), a <= b, of a norm below 1 -> roughly the nearest matrices with orthogonal rows (Polar Express)"""
    for a, b, c in POLAR[:rounds]: A = X @ X.mT; X = a * X + (b * A + c * (A @ A)) @ X
    return X
