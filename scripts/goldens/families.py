"""Makes the tiny models of test/golden/families, the adapters that belong to them, and what diffusers draws with each.

python scripts/goldens/families.py test/golden/families [family...]

Weights are random, of one magnitude in each tensor (a power of two, so half precision holds them exactly) and of either
sign, because such a file takes a tenth of its size when compressed. README.md beside the families has the layout.
"""

import gzip
import json
import math
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import diffusers
import torch
from clip_vocabulary import clip_folder
from diffusers import AutoencoderKL, AutoencoderTiny, ControlNetModel, UNet2DConditionModel
from safetensors.torch import load, load_file, save
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection, CLIPTokenizer

ROOT = Path(__file__).parents[2]
SMALL, CLIP = ROOT / "models/shapes/tokenizer", clip_folder()
PROMPT, NEGATIVE = "a red circle above a blue square", "gray"
BETAS = {"num_train_timesteps": 1000, "beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "steps_offset": 1}
PNDM = ("PNDMScheduler", {**BETAS, "skip_prk_steps": True, "set_alpha_to_one": False})
DDIM = ("DDIMScheduler", {**BETAS, "set_alpha_to_one": False, "clip_sample": False})
DDIM_V = ("DDIMScheduler", {**DDIM[1], "prediction_type": "v_prediction"})
EULER = ("EulerDiscreteScheduler", {**BETAS, "timestep_spacing": "leading"})
TRAILING = ("EulerDiscreteScheduler", {**BETAS, "timestep_spacing": "trailing"})
ANCESTRAL = ("EulerAncestralDiscreteScheduler", {**BETAS, "timestep_spacing": "trailing"})
LCM = ("LCMScheduler", {**BETAS, "set_alpha_to_one": True, "original_inference_steps": 50, "clip_sample": False})


# ---- Parts

def generator(seed):
    return torch.Generator().manual_seed(seed)


def coarse(*shape, seed):
    """Normal numbers of few digits, which compress."""
    return (torch.randn(*shape, generator=generator(seed)) * 4).round() / 4


def picture(rows, size, seed):
    return torch.randint(0, 9, (rows, 3, *size), generator=generator(seed)) / 8


@torch.no_grad()
def randomise(module, seed):
    draw = generator(seed)
    for name, p in module.named_parameters():
        sign = torch.randint(0, 2, p.shape, generator=draw) * 2.0 - 1
        if p.ndim == 1: p.copy_(1 + sign / 8 if "norm" in name and name.endswith("weight") else sign / 16)
        else: p.copy_(sign * 2.0 ** -(1 if "embedding.weight" in name else round(math.log2(p[0].numel()) / 2)))
    return module.eval()


def unet(seed, cross, channels, layers, **config):
    """cross: 1 for each level with cross-attention, 0 for the others"""
    blocks = lambda way, order: [("CrossAttn" if c else "") + way + "Block2D" for c in order]
    return randomise(UNet2DConditionModel(sample_size=8, block_out_channels=channels, layers_per_block=layers, down_block_types=blocks("Down", cross), up_block_types=blocks("Up", cross[::-1]), **{"norm_num_groups": 4, **config}), seed)


def vae(seed, channels, layers=1, **config):
    count = len(channels)
    return randomise(AutoencoderKL(block_out_channels=channels, layers_per_block=layers, down_block_types=["DownEncoderBlock2D"] * count, up_block_types=["UpDecoderBlock2D"] * count,
                                   sample_size=8 << count - 1, **{"norm_num_groups": 4, **config}), seed)


def text(seed, hidden, heads, tokenizer, projected=0, act="quick_gelu", layers=3):
    vocabulary = len(tokenizer); kind = CLIPTextModelWithProjection if projected else CLIPTextModel
    model = randomise(kind(CLIPTextConfig(vocab_size=vocabulary, hidden_size=hidden, intermediate_size=2 * hidden if hidden < 64 else 4 * hidden, num_hidden_layers=layers, num_attention_heads=heads, projection_dim=projected or hidden, hidden_act=act,
                                          bos_token_id=vocabulary - 2, eos_token_id=vocabulary - 1, pad_token_id=tokenizer.pad_token_id)), seed)
    if vocabulary > 1000:      # rows of tokens that no case has are zero, and cost nothing in a compressed file
        used = sorted({i for words in (PROMPT, NEGATIVE, "") for i in tokenizer(words, padding="max_length").input_ids})
        rows = model.get_input_embeddings().weight.data; kept = torch.zeros_like(rows); kept[used] = rows[used]; rows.copy_(kept)
    model.__dict__["text_model"] = getattr(model, "text_model", model)       # where diffusers 0.42 looks for the norm of a clip skip
    return model


def tokenizer(folder=SMALL, pad="<|endoftext|>"):
    return CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), pad_token=pad, model_max_length=77)


def scheduler(kind):
    return getattr(diffusers, kind[0])(**kind[1])


def control(unet, seed, channels):
    return randomise(ControlNetModel.from_unet(unet, conditioning_embedding_out_channels=channels), seed)


def sd(unet, vae, text, tok, kind, name="StableDiffusionPipeline", **more):
    pipe = getattr(diffusers, name)(vae=vae, text_encoder=text, tokenizer=tok, unet=unet, scheduler=scheduler(kind), safety_checker=None, feature_extractor=None, requires_safety_checker=False, **more)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def xl(unet, vae, texts, toks, kind, **more):
    pipe = getattr(diffusers, more.pop("name", "StableDiffusionXLPipeline"))(vae=vae, text_encoder=texts[0], text_encoder_2=texts[1], tokenizer=toks[0], tokenizer_2=toks[1], unet=unet, scheduler=scheduler(kind), add_watermarker=False, **more)
    pipe.set_progress_bar_config(disable=True)
    return pipe


# ---- Names of the original files

def ldm_unet(model, prefix="model.diffusion_model."):
    """Names of diffusers' U-Net or ControlNet -> those of the original."""
    c, names = model.config, {}
    per, count = c.layers_per_block, len(c.block_out_channels)
    parts = {"time_embedding.linear_1": "time_embed.0", "time_embedding.linear_2": "time_embed.2", "time_embedding.cond_proj": "time_embed.cond_proj", "add_embedding.linear_1": "label_emb.0.0", "add_embedding.linear_2": "label_emb.0.2",
             "conv_in": "input_blocks.0.0", "conv_norm_out": "out.0", "conv_out": "out.2", "mid_block.resnets.0": "middle_block.0", "mid_block.attentions.0": "middle_block.1", "mid_block.resnets.1": "middle_block.2",
             "controlnet_mid_block": "middle_block_out.0", "controlnet_cond_embedding.conv_in": "input_hint_block.0"}
    for level in range(count):
        for j in range(per):
            i = 1 + level * (per + 1) + j; parts[f"down_blocks.{level}.resnets.{j}"], parts[f"down_blocks.{level}.attentions.{j}"] = f"input_blocks.{i}.0", f"input_blocks.{i}.1"
        parts[f"down_blocks.{level}.downsamplers.0.conv"] = f"input_blocks.{(level + 1) * (per + 1)}.0.op"
        attention = getattr(c, "up_block_types", None) and c.up_block_types[level].startswith("CrossAttn")
        for j in range(per + 1):
            i = level * (per + 1) + j; parts[f"up_blocks.{level}.resnets.{j}"], parts[f"up_blocks.{level}.attentions.{j}"] = f"output_blocks.{i}.0", f"output_blocks.{i}.1"
        parts[f"up_blocks.{level}.upsamplers.0.conv"] = f"output_blocks.{level * (per + 1) + per}.{2 if attention else 1}.conv"
    for i in range(40): parts[f"controlnet_down_blocks.{i}"] = f"zero_convs.{i}.0"
    hints = 2 * len(getattr(c, "conditioning_embedding_out_channels", None) or (1,)) - 2
    for i in range(hints): parts[f"controlnet_cond_embedding.blocks.{i}"] = f"input_hint_block.{2 * i + 2}"
    parts["controlnet_cond_embedding.conv_out"] = f"input_hint_block.{2 * hints + 2}"
    inside = {"norm1": "in_layers.0", "conv1": "in_layers.2", "time_emb_proj": "emb_layers.1", "norm2": "out_layers.0", "conv2": "out_layers.3", "conv_shortcut": "skip_connection"}
    for key in model.state_dict():
        part = max((p for p in parts if key.startswith(p + ".")), key=len); rest = key[len(part) + 1:]; head, _, leaf = rest.partition(".")
        names[key] = prefix + parts[part] + "." + (f"{inside[head]}.{leaf}" if "resnets" in part else rest)
    return names


def ldm_vae(model, prefix="first_stage_model."):
    last, names = len(model.config.block_out_channels) - 1, {}
    changes = [("mid_block.resnets.0", "mid.block_1"), ("mid_block.resnets.1", "mid.block_2"), ("mid_block.attentions.0", "mid.attn_1"), ("group_norm", "norm"), ("to_q", "q"), ("to_k", "k"), ("to_v", "v"), ("to_out.0", "proj_out"),
               ("conv_norm_out", "norm_out"), ("conv_shortcut", "nin_shortcut"), ("resnets", "block"), ("downsamplers.0", "downsample"), ("upsamplers.0", "upsample"), ("down_blocks", "down")]
    for key in model.state_dict():
        new = key
        for old, name in changes: new = new.replace(old, name)
        for i in range(last + 1): new = new.replace(f"up_blocks.{i}.", f"up.{last - i}.")
        names[key] = prefix + new
    return names


def open_clip(model, prefix):
    """The tensors of a text encoder as OpenCLIP has them. One without a projection is that of 2.x, which leaves out OpenCLIP's last layer."""
    held, out = {k.removeprefix("text_model."): v for k, v in model.state_dict().items()}, {}
    out.update({"token_embedding.weight": held["embeddings.token_embedding.weight"], "positional_embedding": held["embeddings.position_embedding.weight"], "ln_final.weight": held["final_layer_norm.weight"],
                "ln_final.bias": held["final_layer_norm.bias"], "logit_scale": torch.tensor(4.6)})
    out["text_projection"] = held["text_projection.weight"].T if "text_projection.weight" in held else torch.eye(model.config.hidden_size)
    count = model.config.num_hidden_layers
    for i in range(count if "text_projection.weight" in held else count + 1):
        for leaf in ("weight", "bias"):
            get = lambda name: held[f"encoder.layers.{i % count}.{name}.{leaf}"]; layer = f"transformer.resblocks.{i}."
            out[f"{layer}attn.in_proj_{leaf}"] = torch.cat([get(f"self_attn.{n}_proj") for n in "qkv"])
            for new, old in {"attn.out_proj": "self_attn.out_proj", "ln_1": "layer_norm1", "ln_2": "layer_norm2", "mlp.c_fc": "mlp.fc1", "mlp.c_proj": "mlp.fc2"}.items(): out[f"{layer}{new}.{leaf}"] = get(old)
    return {prefix + k: v for k, v in out.items()}


def hugging(model, prefix):
    return {prefix + "text_model." + k.removeprefix("text_model."): v for k, v in model.state_dict().items()}


def renamed(model, names):
    held = model.state_dict()
    return {new: held[old][:, :, None, None] if ".attn_1." in new and new.endswith("weight") and "norm" not in new else held[old] for old, new in names.items()}


def checkpoint(pipe):
    """One file in the original names."""
    out = {**renamed(pipe.unet, ldm_unet(pipe.unet)), **renamed(pipe.vae, ldm_vae(pipe.vae))}
    if hasattr(pipe, "text_encoder_2"):
        out |= hugging(pipe.text_encoder, "conditioner.embedders.0.transformer.") | open_clip(pipe.text_encoder_2, "conditioner.embedders.1.model.")
    elif pipe.text_encoder.config.hidden_act == "gelu": out |= open_clip(pipe.text_encoder, "cond_stage_model.model.")
    else: out |= hugging(pipe.text_encoder, "cond_stage_model.transformer.")
    return out


# ---- Adapters: tensors of a file, from the modules that it changes

def layers_of(model, kinds):
    return [(name, m) for name, m in model.named_modules() if hasattr(m, "weight") and m.weight.ndim > 1 and name.endswith(kinds)]


ATTENTION = ("to_q", "to_k", "to_v", "to_out.0")
LINEAR = (*ATTENTION, "ff.net.0.proj", "ff.net.2", "proj_in", "proj_out", "time_emb_proj")
CONVOLUTIONS = ("conv1", "conv2", "conv_shortcut", "downsamplers.0.conv", "upsamplers.0.conv", "conv_in", "conv_out")
TEXT = ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2")


def factors(m, rank, draw, scale=0.125):
    out, *inputs = m.weight.shape
    sign = lambda *shape: (torch.randint(0, 2, shape, generator=draw) * 2.0 - 1) * scale
    return sign(rank, *inputs), sign(out, rank, *([1] * (len(inputs) - 1)))


def named(pipe):
    """-> (part, kohya's prefix, model, kinds of a text encoder or None)"""
    two = hasattr(pipe, "text_encoder_2")
    yield "unet", "lora_unet_", pipe.unet, None
    yield "text_encoder", "lora_te1_" if two else "lora_te_", pipe.text_encoder, TEXT
    if two: yield "text_encoder_2", "lora_te2_", pipe.text_encoder_2, TEXT


def hub_path(path, kinds):
    return path if kinds is None or path.startswith("text_model.") else "text_model." + path


def added_by(m, down, up, scale):
    return scale * (up.flatten(1) @ down.flatten(1)).reshape(m.weight.shape)


@torch.no_grad()
def dora(m, delta, draw, by="output"):
    """-> (a quarter more or less than the weight's lengths along its outputs or inputs, what is added when the changed weight gets these lengths)"""
    axes = [d for d in range(m.weight.ndim) if d != (0 if by == "output" else 1)]; length = lambda v: v.square().sum(axes, keepdim=True).sqrt()
    changed = m.weight + delta; size = length(m.weight); size = size * (1.25 - 0.5 * torch.randint(0, 2, size.shape, generator=draw))
    return size, size * changed / length(changed) - m.weight


def peft_lora(pipe, seed, kinds=ATTENTION, rank=2, magnitudes=False, parts=3):
    """-> (tensors, [(weight, what is added to it)])"""
    draw, out, added = generator(seed), {}, []
    for part, _, model, text_kinds in list(named(pipe))[:parts]:
        for path, m in layers_of(model, text_kinds or kinds):
            key = f"{part}.{hub_path(path, text_kinds)}"; down, up = out[f"{key}.lora_A.weight"], out[f"{key}.lora_B.weight"] = factors(m, rank, draw); delta = added_by(m, down, up, 1)
            if magnitudes: size, delta = dora(m, delta, draw); out[f"{key}.lora_magnitude_vector"] = size.flatten()
            added.append((m.weight, delta))
    return out, added


def kohya_key(prefix, path, kinds, ldm=None):
    return prefix + (ldm[path + ".weight"].removesuffix(".weight") if ldm and kinds is None else hub_path(path, kinds)).replace(".", "_")


def kohya_lora(pipe, seed, kinds, rank=4, alpha=2.0, ldm=False, by=None, parts=3):
    draw, out, added = generator(seed), {}, []
    for _, prefix, model, text_kinds in list(named(pipe))[:parts]:
        for path, m in layers_of(model, text_kinds or kinds):
            key = kohya_key(prefix, path, text_kinds, ldm_unet(pipe.unet, "") if ldm else None); down, up = factors(m, rank, draw); delta = added_by(m, down, up, alpha / rank)
            out |= {f"{key}.lora_down.weight": down, f"{key}.lora_up.weight": up, f"{key}.alpha": torch.tensor(alpha)}
            if by: out[f"{key}.dora_scale"], delta = dora(m, delta, draw, by)
            added.append((m.weight, delta))
    return out, added


def lycoris(pipe, seed, kind):
    """-> (tensors, what is added to the weights) of LoHa ("hada"), LoKr ("lokr") or full differences ("diff")."""
    draw, out, added = generator(seed), {}, []
    sign = lambda *shape, scale=0.25: (torch.randint(0, 2, shape, generator=draw) * 2.0 - 1) * scale
    for _, prefix, model, text_kinds in named(pipe):
        for number, (path, m) in enumerate(layers_of(model, text_kinds or (*LINEAR, *CONVOLUTIONS))):
            key, shape = kohya_key(prefix, path, text_kinds), m.weight.shape; o, i = shape[:2]; square, rank, alpha = m.weight.shape[2:], 2, 1.0
            if kind == "diff": delta = out[f"{key}.diff"] = sign(*shape, scale=2.0 ** -round(math.log2(m.weight[0].numel()) / 2 + 1)); bias = m.bias is not None and number % 2 == 0
            elif kind == "hada":
                tucker = len(square) > 0 and square[0] > 1 and number % 2 == 0; halves = []
                for n in "12":
                    a, b = (sign(rank, i), sign(rank, o)) if tucker else (sign(rank, m.weight[0].numel()), sign(o, rank)); core = sign(rank, rank, *square) if tucker else None
                    out[f"{key}.hada_w{n}_a"], out[f"{key}.hada_w{n}_b"] = b, a
                    if tucker: out[f"{key}.hada_t{n}"] = core
                    halves.append(torch.einsum("ijkl,jr,ip->prkl", core, a, b) if tucker else (b @ a).reshape(shape))
                delta, bias = halves[0] * halves[1] * alpha / rank, False
            else:
                f = 2; whole = number % 3 == 0; w1 = out[f"{key}.lokr_w1"] = sign(f, f)
                if whole: w2 = out[f"{key}.lokr_w2"] = sign(o // f, i // f, *square); scale = 1.0
                else: a, b = out[f"{key}.lokr_w2_a"], out[f"{key}.lokr_w2_b"] = sign(o // f, rank), sign(rank, i // f * math.prod(square)); w2 = (a @ b).reshape(o // f, i // f, *square); scale = alpha / rank
                delta, bias = torch.kron(w1.view(f, f, *[1] * len(square)), w2) * scale, False
            if kind != "diff": out[f"{key}.alpha"] = torch.tensor(alpha)
            added.append((m.weight, delta))
            if bias: out[f"{key}.diff_b"] = sign(o, scale=0.125); added.append((m.bias, out[f"{key}.diff_b"]))
    return out, added


# ---- Writing and recording

def put(file, data):
    """Whatever is larger than 4 kB is compressed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if len(data) > 4096: file = file.with_name(file.name + ".gz"); data = gzip.compress(data, 9, mtime=0)
    file.write_bytes(data)


def put_folder(pipe, out, tokenizers, **options):
    """What pipe.save_pretrained writes, with the tokenizer's files as on the hub, and text encoders named as there."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder); pipe.save_pretrained(folder, **options)
        for file in sorted(folder.rglob("*")):
            where = file.relative_to(folder)
            if file.is_dir() or where.parts[0].startswith("tokenizer"): continue
            data = file.read_bytes()
            if where.parts[0].startswith("text_encoder") and file.suffix == ".safetensors": data = save({"text_model." + k if not k.startswith("text_") else k: v for k, v in load(data).items()}, {"format": "pt"})
            put(out / where, data)
    for name, pad in tokenizers.items():
        put(out / name / "tokenizer_config.json", json.dumps({"tokenizer_class": "CLIPTokenizer", "model_max_length": 77, "bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>", "pad_token": pad}, indent=1).encode())
        for file in ("vocab.json", "merges.txt"): put(out / name / file, (SMALL / file).read_bytes())


class Record:
    """Cases and arrays of a family."""

    def __init__(self, pipe, size=(64, 64)):
        self.pipe, self.size, self.cases, self.arrays = pipe, size, [], {}

    def keep(self, **arrays):
        self.arrays |= {k: v.detach().float().contiguous() if v.is_floating_point() else v for k, v in arrays.items()}

    @torch.no_grad()
    def case(self, name, negative=NEGATIVE, prompt=PROMPT, steps=3, cfg=5.0, seed=7, embeddings=False, decoded=False, kind=None, adapters=(), given=(), seeds=(), **options):
        """given: arrays among options, which are kept as <name>.<option>. seeds: of several pictures of one call."""
        p, (height, width) = self.pipe, self.size; before = p.scheduler
        if kind: p.scheduler = scheduler(kind)
        two = hasattr(p, "text_encoder_2"); factor = p.vae_scale_factor
        shape = (1, p.vae.config.latent_channels, height // factor, width // factor); self.arrays[f"{name}.noise"] = torch.cat([torch.randn(shape, generator=generator(one)) for one in seeds or [seed]])
        for key in given: self.arrays[f"{name}.{key}"] = options[key]
        guided = cfg > 1 and not p.unet.config.time_cond_proj_dim
        if embeddings:
            texts = self.encoded(prompt, negative, guided, **{k: v for k, v in options.items() if k == "clip_skip"})
            self.keep(**{f"{name}.prompt_embeds": texts[0], **({f"{name}.negative_prompt_embeds": texts[1]} if guided else {}), **({f"{name}.pooled_prompt_embeds": texts[2]} if two else {}), **({f"{name}.negative_pooled_prompt_embeds": texts[3]} if two and guided else {})})
        if "InstructPix2Pix" not in type(p).__name__ and "image" not in options: options |= {"height": height, "width": width}
        if "LatentConsistency" not in type(p).__name__: options |= {"negative_prompt": negative}
        asked = {"prompt": prompt, **options}
        if "clip_skip" in options:
            asked = {k: v for k, v in options.items() if k not in ("negative_prompt", "clip_skip")}; names = ("prompt_embeds", "negative_prompt_embeds", *(("pooled_prompt_embeds", "negative_pooled_prompt_embeds") if two else ()))
            asked |= dict(zip(names, self.encoded(prompt, negative, guided, clip_skip=options["clip_skip"])))
        if seeds: asked |= {"num_images_per_prompt": len(seeds)}
        latents = p(num_inference_steps=steps, guidance_scale=cfg, generator=[generator(one) for one in seeds] or generator(seed), output_type="latent", **asked).images
        assert latents.isfinite().all() and latents.std() < 100, name
        self.keep(**{f"{name}.latents": latents}); print("  ", name, "deviation of the latents", round(latents.std().item(), 2))
        if decoded: self.arrays[f"{name}.decoded"] = p.vae.decode(latents / p.vae.config.scaling_factor).sample.half()
        told = {k: v for k, v in options.items() if not torch.is_tensor(v) and k not in ("height", "width", "negative_prompt")}
        self.cases.append({"name": name, "prompt": prompt, "negative_prompt": negative, **({"seeds": seeds} if seeds else {"seed": seed}), "steps": steps, "cfg": cfg, "height": height, "width": width, "scheduler": p.scheduler.__class__.__name__,
                           "scheduler_config": {k: v for k, v in p.scheduler.config.items() if not k.startswith("_")} if kind else None, "adapters": list(adapters), **told})
        p.scheduler = before
        return latents

    def encoded(self, prompt, negative, guided, **skip):
        """Embeddings of prompt and negative prompt. diffusers leaves layers out for the prompt alone; here it is for both."""
        encode = lambda text, **other: self.pipe.encode_prompt(prompt=text, device="cpu", num_images_per_prompt=1, **{"do_classifier_free_guidance": guided, **other}, **skip)
        texts = list(encode(prompt, negative_prompt=negative))
        if skip and guided: texts[1] = encode(negative, do_classifier_free_guidance=False)[0]
        return texts

    @torch.no_grad()
    def calls(self):
        """One call of the U-Net with two rows, and the autoencoder in both directions."""
        p, config = self.pipe, self.pipe.unet.config
        h, w = (v // p.vae_scale_factor for v in self.size)
        x, t, e = coarse(2, config.in_channels, h, w, seed=11), torch.tensor([901.0, 17.0]), coarse(2, 77, config.cross_attention_dim, seed=12); inputs = {}
        if config.addition_embed_type: inputs = {"text_embeds": coarse(2, p.text_encoder_2.config.projection_dim, seed=13), "time_ids": torch.tensor([[64.0, 64, 0, 0, 64, 64], [512, 768, 8, 16, 512, 768]])}
        cond = {"timestep_cond": coarse(2, config.time_cond_proj_dim, seed=14)} if config.time_cond_proj_dim else {}
        self.keep(**{f"unet.{k}": v for k, v in {"sample": x, "timestep": t, "encoder_hidden_states": e, **inputs, **cond, "output": p.unet(x, t, e, added_cond_kwargs=inputs, **cond).sample}.items()})
        shown = picture(1, self.size, 15) * 2 - 1; d = p.vae.encode(shown).latent_dist
        self.keep(**{"vae.picture": shown, "vae.mean": d.mean, "vae.logvar": d.logvar})

    def controlled(self, net):
        """One call of a ControlNet: its residuals, and what the U-Net makes of them."""
        p, get, hint = self.pipe, lambda k: self.arrays[f"unet.{k}"], picture(2, self.size, 12)
        added = {k: get(k) for k in ("text_embeds", "time_ids") if f"unet.{k}" in self.arrays}
        with torch.no_grad():
            down, mid = net(get("sample"), get("timestep"), get("encoder_hidden_states"), hint, 0.8, added_cond_kwargs=added, return_dict=False)
            out = p.unet(get("sample"), get("timestep"), get("encoder_hidden_states"), added_cond_kwargs=added, down_block_additional_residuals=down, mid_block_additional_residual=mid).sample
        self.keep(**{"control.hint": hint, "control.down": torch.cat([v.mean((2, 3)) for v in down], 1), "control.mid": mid, "control.output": out})

    def write(self, out, **facts):
        put(out / "expected.safetensors", save(self.arrays)); (out / "family.json").write_text(json.dumps({**facts, "cases": self.cases}, indent=1) + "\n")


@contextmanager
def merged(added, strength):
    with torch.no_grad():
        before = [p.detach().clone() for p, _ in added]
        for p, delta in added: p.add_(delta, alpha=strength)
        yield
        for (p, _), value in zip(added, before): p.copy_(value)


def adapted(record, out, file, made, name, strength=1.0, **case):
    """A case with one adapter. diffusers reads a LoRA's part for the U-Net too, which must draw the same as its merged weights."""
    pipe, (tensors, added) = record.pipe, made; put(out / "adapters" / f"{file}.safetensors", save(tensors)); plain = record.arrays["plain.latents"]
    with merged(added, strength): latents = record.case(name, adapters=[{"file": f"{file}.safetensors", "strength": strength}], **case)
    if any(".lora_" in k for k in tensors) and not any("dora_scale" in k for k in tensors):      # diffusers leaves out dora_scale
        mine = {id(p) for p in pipe.unet.parameters()}; once = lambda: Record(pipe, record.size).case("again")
        with merged([(p, d) for p, d in added if id(p) in mine], strength): expected = once()
        pipe.load_lora_weights({k: v for k, v in tensors.items() if not k.startswith(("text_", "lora_te"))}, adapter_name="it"); pipe.set_adapters(["it"], [strength])
        difference = (once() - expected).abs().max().item(); pipe.unload_lora_weights(); assert difference < 1e-4, (name, difference)
    print(" ", name, "moves the latents by", round((latents - plain).abs().max().item(), 4))


# ---- Families

def sd15_parts(seed=1, cross=(1, 0), channels=(8, 16), layers=1, **config):
    tok = tokenizer()
    return unet(seed, cross, channels, layers, cross_attention_dim=16, attention_head_dim=2, **config), vae(seed + 1, (8, 8, 8, 16)), text(seed + 2, 16, 2, tok), tok


def sd15(out):
    u, v, t, tok = sd15_parts(1, (1, 1, 0), (8, 16, 16), 2); pipe = sd(u, v, t, tok, PNDM); r = Record(pipe, (64, 96))
    put_folder(pipe, out / "model", {"tokenizer": "<|endoftext|>"}, max_shard_size="200KB"); r.calls()
    r.case("plain", embeddings=True, decoded=True); r.case("no-guidance", negative=None, cfg=1.0); r.case("ddim", kind=DDIM); r.case("clip-skip", clip_skip=1, embeddings=True); r.case("three-pictures", seeds=[7, 8, 2**32 - 1])
    attention = peft_lora(pipe, 21); linear = kohya_lora(pipe, 22, LINEAR); locon = kohya_lora(pipe, 23, (*LINEAR, *CONVOLUTIONS), rank=2, alpha=1.0)
    adapted(r, out, "lora-attention-peft", attention, "lora-attention", embeddings=True); adapted(r, out, "lora-linear-kohya", linear, "lora-linear", 0.75); adapted(r, out, "locon-kohya", locon, "locon", 0.5)
    for kind, name in (("hada", "loha"), ("lokr", "lokr"), ("diff", "diff")): adapted(r, out, name, lycoris(pipe, 24, kind), name, 0.75)
    adapted(r, out, "dora-peft", peft_lora(pipe, 25, magnitudes=True, parts=1), "dora-peft")
    for by in ("output", "input"): adapted(r, out, f"dora-kohya-{by}", kohya_lora(pipe, 30, (*LINEAR, *CONVOLUTIONS), by=by), f"dora-{by}")
    with merged(attention[1], 0.5), merged(linear[1], 0.25): r.case("two-loras", adapters=[{"file": "lora-attention-peft.safetensors", "strength": 0.5}, {"file": "lora-linear-kohya.safetensors", "strength": 0.25}])
    zig, zag = coarse(2, 16, seed=26) / 2, coarse(1, 16, seed=27) / 2
    put(out / "adapters/zig.safetensors", save({"emb_params": zig})); put(out / "adapters/zag.safetensors", save({"<zag>": zag}))
    for word, rows in (("<zig>", zig), ("<zag>", zag)): pipe.load_textual_inversion(rows, token=word)
    r.case("textual-inversion", prompt="a <zig> circle", negative="<zag> gray", embeddings=True, adapters=[{"file": "zig.safetensors", "token": "<zig>"}, {"file": "zag.safetensors", "token": "<zag>"}])
    t.resize_token_embeddings(len(tokenizer())); pipe.tokenizer = tokenizer()
    net = control(u, 28, (4, 8, 8, 8)); net.save_pretrained(folder := Path(tempfile.mkdtemp()))
    for file in sorted(folder.iterdir()): put(out / "control" / file.name, file.read_bytes())
    r.controlled(net); controlled = Record(sd(u, v, t, pipe.tokenizer, PNDM, "StableDiffusionControlNetPipeline", controlnet=net), r.size); controlled.cases, controlled.arrays = r.cases, r.arrays
    controlled.case("control", controlnet_conditioning_scale=0.8, image=picture(1, r.size, 29), given=["image"])
    r.write(out, base="sd1")


def sd21(out, kind=DDIM_V, prediction="v_prediction", seed=31, variant=None):
    tok = tokenizer(pad="!"); t = text(seed, 24, 3, tok, act="gelu"); u = unet(seed + 1, (1, 0), (8, 16), 1, cross_attention_dim=24, attention_head_dim=(1, 2), use_linear_projection=True)
    pipe = sd(u, vae(seed + 2, (8, 8, 16)), t, tok, kind); r = Record(pipe, (32, 48)); half = {"variant": variant} if variant else {}
    if variant: pipe.to(torch.float16)
    put_folder(pipe, out / "model", {"tokenizer": "!"}, **half); pipe.to(torch.float32); r.calls(); r.case("plain", embeddings=True, decoded=True)
    adapted(r, out, "lora-linear-kohya", kohya_lora(pipe, seed + 3, LINEAR), "lora-linear")
    r.write(out, base="sd2", prediction_type=prediction)


def xl_parts(seed, kind):
    toks = tokenizer(), tokenizer(pad="!"); texts = text(seed, 16, 2, toks[0]), text(seed + 1, 24, 3, toks[1], projected=24, act="gelu")
    u = unet(seed + 2, (0, 1, 1), (8, 8, 16), 2, cross_attention_dim=40, attention_head_dim=(1, 2, 4), use_linear_projection=True, transformer_layers_per_block=(1, 1, 2), addition_embed_type="text_time", addition_time_embed_dim=8, projection_class_embeddings_input_dim=24 + 6 * 8)
    return u, vae(seed + 3, (8, 8, 16), scaling_factor=0.13025), texts, toks


def sdxl(out):
    u, v, texts, toks = xl_parts(41, EULER); pipe = xl(u, v, texts, toks, EULER); r = Record(pipe, (32, 48)); pads = {"tokenizer": "<|endoftext|>", "tokenizer_2": "!"}
    pipe.to(torch.float16); put_folder(pipe, out / "model", pads, variant="fp16"); pipe.to(torch.float32); r.calls()
    r.case("plain", embeddings=True, decoded=True); r.case("no-negative", negative=None, embeddings=True); r.case("clip-skip", clip_skip=1, embeddings=True); r.case("sizes", original_size=(512, 768), crops_coords_top_left=(8, 16))
    adapted(r, out, "lora-kohya-ldm", kohya_lora(pipe, 45, LINEAR[:-1], ldm=True), "lora-kohya-ldm", embeddings=True); adapted(r, out, "lora-peft", peft_lora(pipe, 46), "lora-peft")
    zig = {"clip_l": coarse(2, 16, seed=47) / 2, "clip_g": coarse(2, 24, seed=48) / 2}; put(out / "adapters/zig.safetensors", save(zig))
    pipe.load_textual_inversion(zig["clip_l"], token="<zig>", text_encoder=texts[0], tokenizer=toks[0]); pipe.load_textual_inversion(zig["clip_g"], token="<zig>", text_encoder=texts[1], tokenizer=toks[1])
    r.case("textual-inversion", prompt="a <zig> circle", embeddings=True, adapters=[{"file": "zig.safetensors", "token": "<zig>"}])
    for t in texts: t.resize_token_embeddings(len(tokenizer()))
    fresh = tokenizer(), tokenizer(pad="!"); net = control(u, 49, (4, 8, 8)); net.save_pretrained(folder := Path(tempfile.mkdtemp()))
    for file in sorted(folder.iterdir()): put(out / "control" / file.name, file.read_bytes())
    r.controlled(net); c = Record(xl(u, v, texts, fresh, EULER, name="StableDiffusionXLControlNetPipeline", controlnet=net), r.size); c.cases, c.arrays = r.cases, r.arrays
    c.case("control", controlnet_conditioning_scale=0.8, image=picture(1, r.size, 29), given=["image"])
    r.write(out, base="sdxl")


def sdxl_turbo(out):
    u, v, texts, toks = xl_parts(51, TRAILING); pipe = xl(u, v, texts, toks, ANCESTRAL); r = Record(pipe, (32, 32))
    put_folder(pipe, out / "model", {"tokenizer": "<|endoftext|>", "tokenizer_2": "!"}); r.case("plain", negative=None, steps=2, cfg=0.0, decoded=True); r.case("lightning", negative=None, steps=4, cfg=0.0, kind=TRAILING)
    r.write(out, base="sdxl")


def lcm(out):
    u, v, t, tok = sd15_parts(61, time_cond_proj_dim=16); r = Record(sd(u, v, t, tok, LCM, "LatentConsistencyModelPipeline"))
    put_folder(r.pipe, out / "model", {"tokenizer": "<|endoftext|>"}); r.calls(); r.case("plain", negative=None, steps=4, cfg=8.0, decoded=True, embeddings=True); r.case("weak-guidance", negative=None, steps=1, cfg=1.5); r.write(out, base="sd1")


def inpainting(out):
    u, v, t, tok = sd15_parts(71, in_channels=9); r = Record(sd(u, v, t, tok, PNDM, "StableDiffusionInpaintPipeline")); shown = picture(1, r.size, 72); mask = torch.zeros(1, 1, *r.size); mask[..., 16:48, 24:64] = 1
    with torch.no_grad(): seen = v.encode((shown * 2 - 1) * (mask < 0.5)).latent_dist.mode() * v.config.scaling_factor
    put_folder(r.pipe, out / "model", {"tokenizer": "<|endoftext|>"}); r.calls(); given = {"image": shown, "mask_image": mask, "masked_image_latents": seen}; r.case("plain", strength=1.0, decoded=True, given=given, **given); r.write(out, base="sd1")


def instruct_pix2pix(out):
    u, v, t, tok = sd15_parts(81, in_channels=8); r = Record(sd(u, v, t, tok, DDIM, "StableDiffusionInstructPix2PixPipeline")); put_folder(r.pipe, out / "model", {"tokenizer": "<|endoftext|>"}); r.calls()
    r.case("plain", image_guidance_scale=1.5, decoded=True, image=picture(1, r.size, 82), given=["image"]); r.write(out, base="sd1")


def taesd(out):
    model = randomise(AutoencoderTiny(encoder_block_out_channels=(8,) * 4, decoder_block_out_channels=(8,) * 4), 91); shown = picture(1, (32, 48), 92) * 2 - 1
    with torch.no_grad(): latents = model.encode(shown).latents; decoded = model.decode(latents).sample
    model.save_pretrained(folder := Path(tempfile.mkdtemp()))
    for file in sorted(folder.iterdir()): put(out / "model" / file.name, file.read_bytes())
    for half, start in (("encoder", 0), ("decoder", 1)):      # the original decoder's first layer, which clamps, has a number and no weights
        put(out / f"taesd_{half}.safetensors", save({".".join((str(int(k.split(".")[1]) + start), *k.split(".")[2:])): v for k, v in model.state_dict().items() if k.startswith(half) for k in [k.removeprefix(half + ".")]}))
    put(out / "expected.safetensors", save({"vae.picture": shown, "vae.latents": latents.contiguous(), "vae.decoded": decoded.contiguous()})); (out / "family.json").write_text('{"base": "taesd", "cases": []}\n')


# ---- Families of single files, which have the sizes that shapes cannot tell as the real ones: 32 groups; 8 heads in 1.x, else heads of 64; text encoders with heads of 64

def single(out, pipe, name="model", model=None, half=False):
    """Writes the checkpoint after diffusers has read the same U-Net and autoencoder from it."""
    tensors = checkpoint(pipe) if model is None else renamed(model, ldm_unet(model, "control_model."))
    tensors = {k: (v.half() if half else v).contiguous().clone() for k, v in tensors.items()}; file = Path(tempfile.mkdtemp()) / "it.safetensors"
    if model is None: tensors["alphas_cumprod"] = pipe.scheduler.alphas_cumprod.clone()
    if any(k.startswith("cond_stage_model.transformer") for k in tensors): tensors["cond_stage_model.transformer.text_model.embeddings.position_ids"] = torch.arange(77)[None]
    file.write_bytes(save(tensors)); put(out / f"{name}.safetensors", file.read_bytes())
    for part in ([pipe.unet, pipe.vae] if model is None else [model]):
        part.save_config(file.parent / "part"); read = type(part).from_single_file(file, config=str(file.parent / "part")).state_dict()
        for k, v in part.state_dict().items(): assert torch.equal(read[k].float(), v), k
    if model is not None: return
    pipe.save_pretrained(file.parent / "folder")
    for told in sorted((file.parent / "folder").rglob("*config.json")):
        if "tokenizer" not in told.parent.name: put(out / "folder" / told.relative_to(file.parent / "folder"), told.read_bytes())


def sd15_file(out):
    tok = tokenizer(CLIP); u = unet(101, (1, 1, 1, 0), (32,) * 4, 2, cross_attention_dim=64, attention_head_dim=8, norm_num_groups=32); v = vae(102, (32,) * 4, 2, norm_num_groups=32)
    # At 64 x 64 groups of the deepest level would be of one number, whose deviation is all rounding; much guidance multiplies what is left of it.
    pipe = sd(u, v, text(103, 64, 1, tok, layers=2), tok, PNDM); r = Record(pipe, (128, 128)); single(out, pipe, half=True); r.calls(); r.case("plain", cfg=3.0, embeddings=True, decoded=True)
    net = control(u, 104, (16, 16, 32, 32)); single(out, pipe, "control", net); r.controlled(net); r.write(out, base="sd1")


def sd21_file(out):
    tok = tokenizer(CLIP, "!"); u = unet(111, (1, 0), (64, 64), 1, cross_attention_dim=128, attention_head_dim=(1, 1), use_linear_projection=True, norm_num_groups=32)
    pipe = sd(u, vae(112, (32,) * 4, norm_num_groups=32), text(113, 128, 2, tok, act="gelu", layers=2), tok, DDIM_V); r = Record(pipe); single(out, pipe); r.calls(); r.case("plain", embeddings=True, decoded=True)
    r.write(out, base="sd2", prediction_type="v_prediction")


def sdxl_file(out):
    toks = tokenizer(CLIP), tokenizer(CLIP, "!"); texts = text(121, 64, 1, toks[0], layers=2), text(122, 64, 1, toks[1], projected=64, act="gelu", layers=2)
    u = unet(123, (0, 1, 1), (32, 64, 64), 2, cross_attention_dim=128, attention_head_dim=(1, 1, 1), use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=8, projection_class_embeddings_input_dim=64 + 6 * 8, norm_num_groups=32)
    pipe = xl(u, vae(124, (32,) * 4, norm_num_groups=32, scaling_factor=0.13025), texts, toks, EULER); r = Record(pipe); single(out, pipe, half=True); r.calls(); r.case("plain", embeddings=True, decoded=True); r.case("no-negative", negative=None)
    r.write(out, base="sdxl")


FAMILIES = {"sd15": sd15, "sd21": sd21, "sd21-base": lambda out: sd21(out, DDIM, "epsilon", 35, "fp16"), "sdxl": sdxl, "sdxl-turbo": sdxl_turbo, "lcm": lcm, "inpainting": inpainting,
            "instruct-pix2pix": instruct_pix2pix, "taesd": taesd, "sd15-file": sd15_file, "sd21-file": sd21_file, "sdxl-file": sdxl_file}


def main(out, *names):
    torch.set_num_threads(1)
    for name in names or FAMILIES:
        print(name, flush=True); folder = Path(out) / name; shutil.rmtree(folder, ignore_errors=True); folder.mkdir(parents=True); FAMILIES[name](folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
