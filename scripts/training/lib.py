"""What the scripts of the fourth edition share: loading parts, sampling latents, decoding, judging."""
import json, os, subprocess, time
from pathlib import Path
import numpy as np, torch
import diffusers
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextModel, CLIPTokenizer
from common import BETAS
HERE = Path(__file__).parent
CONFIG = dict(BETAS, steps_offset=1, set_alpha_to_one=False, skip_prk_steps=True, clip_sample=False, prediction_type="v_prediction")
SCHEDULERS = {"ddim": ("DDIMScheduler", {}), "pndm": ("PNDMScheduler", {}), "euler": ("EulerDiscreteScheduler", {}), "euler_a": ("EulerAncestralDiscreteScheduler", {}),
    "heun": ("HeunDiscreteScheduler", {}), "dpmpp_2m": ("DPMSolverMultistepScheduler", {}), "dpmpp_2m_karras": ("DPMSolverMultistepScheduler", dict(use_karras_sigmas=True)),
    "dpmpp_2m_sde_karras": ("DPMSolverMultistepScheduler", dict(algorithm_type="sde-dpmsolver++", use_karras_sigmas=True)), "dpmpp_2m_sde": ("DPMSolverMultistepScheduler", dict(algorithm_type="sde-dpmsolver++")),
    "unipc": ("UniPCMultistepScheduler", {}), "deis": ("DEISMultistepScheduler", {}), "ddpm": ("DDPMScheduler", {}), "lms": ("LMSDiscreteScheduler", {})}
SIZE = {"square": (512, 512), "portrait": (768, 512), "landscape": (512, 768)}        # height, width


def parts(folder, unet="unet", text="text_encoder"):
    p = Path(folder)
    tok = CLIPTokenizer(str(p / "tokenizer/vocab.json"), str(p / "tokenizer/merges.txt"), model_max_length=77)
    return UNet2DConditionModel.from_pretrained(p / unet).eval().to(memory_format=torch.channels_last), CLIPTextModel.from_pretrained(p / text).eval(), tok


def ids_of(tok, captions): return tok(captions, padding="max_length", truncation=True, max_length=77, return_tensors="pt").input_ids


@torch.inference_mode()
def sample_latents(unet, text, tok, captions, noise, cfg=3.0, steps=25, scheduler="ddim", start=None, generator=None):
    """noise: (N, 22, h, w). cfg: a number or a tensor of N. start: (latents, t0) begins at the last step of at most t0 from latents + noise."""
    cls, extra = SCHEDULERS[scheduler]; s = getattr(diffusers, cls).from_config(dict(CONFIG, **extra)); s.set_timesteps(steps)
    cond, unc = text(ids_of(tok, captions)).last_hidden_state, text(ids_of(tok, [""])).last_hidden_state.expand(len(captions), -1, -1)
    e = torch.cat([unc, cond]); w = torch.as_tensor(cfg, dtype=torch.float32).view(-1, 1, 1, 1)
    ts = s.timesteps
    if start is not None: ts = ts[ts <= start[1]]; x = s.add_noise(start[0], noise, ts[:1].expand(len(noise)))
    else: x = noise * s.init_noise_sigma
    kw = {"generator": generator} if "generator" in s.step.__code__.co_varnames else {}
    for t in ts:
        y = s.scale_model_input(torch.cat([x, x]), t)
        u, c = unet(y.contiguous(memory_format=torch.channels_last), t.expand(len(y)) if t.dim() == 0 else t, e).sample.chunk(2)
        x = s.step(u + w * (c - u), t, x, **kw).prev_sample
    return x.contiguous()


def judge_latents(scenes, latents, vae, folder, keep=False):
    """scenes: of judge/scenes.cjs; latents: a list in their order (None: leave out) -> what judge/verdicts.cjs prints, and the rows"""
    folder = Path(folder); folder.mkdir(parents=True, exist_ok=True)
    for f in folder.glob("*.rgb"): f.unlink()
    with torch.inference_mode():
        for i, z in enumerate(latents):
            if z is None: continue
            img = (vae.decode(z[None]).sample[0] / 2 + 0.5).clamp(0, 1)
            (folder / f"{i}.rgb").write_bytes((img * 255).round().byte().permute(1, 2, 0).contiguous().numpy().tobytes())
    (folder / "scenes.json").write_text(json.dumps(scenes))
    line = subprocess.run(["node", HERE / "judge/verdicts.cjs", folder / "scenes.json", folder, folder / "out.json"], capture_output=True, text=True, check=True).stdout.strip()
    if not keep:
        for f in folder.glob("*.rgb"): f.unlink()
    return line, json.loads((folder / "out.json").read_text())
