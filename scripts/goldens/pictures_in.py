"""Records what diffusers draws from pictures, masks and ControlNets, with the tiny models of test/golden/families.

python scripts/goldens/pictures_in.py test/golden/families test/golden/pictures-in

Pictures, masks and maps are given as bytes, as callers give them. README.md beside the families says what the models are.
"""

import gzip
import json
import sys
import tempfile
from pathlib import Path

import diffusers
import torch
from families import NEGATIVE, PROMPT, control, generator, ldm_unet, put, renamed
from PIL import Image
from safetensors.torch import save

# Settings of a name in the model's own configuration, as in libs/diffusion/src/schedulers/index.ts.
PLAIN = {"use_karras_sigmas": False, "use_exponential_sigmas": False, "use_beta_sigmas": False, "use_lu_lambdas": False}
DPMPP_2M = {"algorithm_type": "dpmsolver++", "solver_order": 2, **PLAIN}
SCHEDULERS = {
    "ddim": ("DDIMScheduler", {}), "ddpm": ("DDPMScheduler", {}), "pndm": ("PNDMScheduler", {}), "lms": ("LMSDiscreteScheduler", {}),
    "euler": ("EulerDiscreteScheduler", {}), "euler_a": ("EulerAncestralDiscreteScheduler", {}), "heun": ("HeunDiscreteScheduler", {}),
    "dpmpp_2m": ("DPMSolverMultistepScheduler", DPMPP_2M), "dpmpp_2m_karras": ("DPMSolverMultistepScheduler", {**DPMPP_2M, "use_karras_sigmas": True}),
    "dpmpp_2m_sde_karras": ("DPMSolverMultistepScheduler", {**DPMPP_2M, "use_karras_sigmas": True, "algorithm_type": "sde-dpmsolver++"}),
    "unipc": ("UniPCMultistepScheduler", {}), "lcm": ("LCMScheduler", {}), "deis": ("DEISMultistepScheduler", {"algorithm_type": "deis", "solver_order": 2}),
    "dpmpp_2s": ("DPMSolverSinglestepScheduler", {"algorithm_type": "dpmsolver++", "solver_order": 2}), "dpmpp_sde": ("DPMSolverSDEScheduler", {}),
    "dpm2": ("KDPM2DiscreteScheduler", {}), "dpm2_a": ("KDPM2AncestralDiscreteScheduler", {}), "tcd": ("TCDScheduler", {}),
}


def unpacked(folder):
    """The family with its files as they were before they were compressed."""
    out = Path(tempfile.mkdtemp())
    for file in folder.rglob("*"):
        if file.is_dir(): continue
        to = out / file.relative_to(folder); to.parent.mkdir(parents=True, exist_ok=True); data = file.read_bytes()
        if file.suffix == ".gz": to, data = to.with_suffix(""), gzip.decompress(data)
        to.write_bytes(data)
    return out


def picture(height, width, seed):
    """A picture of few colours in large pieces, so that it is not all noise, with some noise on it."""
    draw = generator(seed)
    coarse = torch.randint(0, 9, (3, -(-height // 16), -(-width // 16)), generator=draw).repeat_interleave(16, 1).repeat_interleave(16, 2)[:, :height, :width]
    return ((coarse * 28 + torch.randint(0, 31, (3, height, width), generator=draw)).permute(1, 2, 0)).to(torch.uint8).contiguous()


def mask(height, width, grey):
    """Repaints a rectangle; with greys also on both sides of the threshold."""
    values = torch.zeros(height, width); values[height // 4:height * 3 // 4, width // 3:] = 255
    if grey: values = torch.arange(height * width).reshape(height, width) % 256; values[height // 2:, : width // 2] = 127; values[: height // 2, width // 2:] = 128
    return values.to(torch.uint8)


class Recorder:
    def __init__(self, families):
        self.families, self.models, self.cases, self.arrays = families, {}, [], {}

    def model(self, family):
        if family not in self.models:
            folder = unpacked(self.families / family); pipe = diffusers.DiffusionPipeline.from_pretrained(folder / "model", **({"variant": "fp16"} if family == "sdxl" else {}), torch_dtype=torch.float32)
            self.models[family] = (pipe, folder)
        return self.models[family]

    def net(self, name):
        family, _ = name.split("/"); _, folder = self.model(family)
        return self.made[name] if name in self.made else diffusers.ControlNetModel.from_pretrained(folder / "control")

    made = {}

    @torch.no_grad()
    def case(self, name, family, size=(64, 64), steps=10, cfg=5.0, seed=7, scheduler=None, strength=None, image=True, masked=None, controls=(), negative=NEGATIVE, decoded=False, image_guidance=None):
        """masked: "rectangle" or "grey". controls: (net, scale, start, end)."""
        base, _ = self.model(family); height, width = size; is_xl = hasattr(base, "text_encoder_2"); changes = base.unet.config.in_channels == 8
        way = "InstructPix2Pix" if changes else "Inpaint" if masked else "Img2Img" if image else ""
        kind = "StableDiffusion" + ("XL" if is_xl else "") + ("ControlNet" if controls else "") + way + "Pipeline"
        parts = {k: v for k, v in base.components.items() if k not in ("image_encoder",) or v is not None}
        if controls: parts["controlnet"] = [self.net(n) for n, *_ in controls] if len(controls) > 1 else self.net(controls[0][0])
        if not is_xl: parts["requires_safety_checker"] = False
        pipe = getattr(diffusers, kind)(**{**parts, **({"add_watermarker": False} if is_xl else {})}); pipe.set_progress_bar_config(disable=True)
        if scheduler:
            cls, told = SCHEDULERS[scheduler]; told = {"clip_sample": False, **told, **({"noise_sampler_seed": seed} if scheduler == "dpmpp_sde" else {})}
            pipe.scheduler = getattr(diffusers, cls).from_config({**base.scheduler.config, **told})
        else: pipe.scheduler = type(base.scheduler).from_config(base.scheduler.config)
        asked, told = {}, {}
        if image:
            self.arrays[f"picture.{height}x{width}"] = shown = picture(height, width, 40); asked["image"] = Image.fromarray(shown.numpy())
        if masked:
            self.arrays[f"mask.{masked}.{height}x{width}"] = values = mask(height, width, masked == "grey"); asked["mask_image"] = Image.fromarray(values.numpy())
        if strength is not None: asked["strength"] = told["strength"] = strength
        if image_guidance is not None: asked["image_guidance_scale"] = told["image_guidance_scale"] = image_guidance
        if not changes and (masked or not image): asked |= {"height": height, "width": width}
        if controls:
            maps = []
            for i in range(len(controls)): self.arrays[f"map.{i}.{height}x{width}"] = shown = picture(height, width, 50 + i); maps.append(Image.fromarray(shown.numpy()))
            one = lambda values: values[0] if len(controls) == 1 else list(values)
            asked |= {"control_image" if image else "image": one(maps), "controlnet_conditioning_scale": one([c[1] for c in controls]), "control_guidance_start": one([c[2] for c in controls]), "control_guidance_end": one([c[3] for c in controls])}
        latents = pipe(prompt=PROMPT, negative_prompt=negative, num_inference_steps=steps, guidance_scale=cfg, generator=generator(seed), output_type="latent", **asked).images
        assert latents.isfinite().all() and latents.std() < 100, name
        self.arrays[f"{name}.latents"] = latents.float().contiguous(); print("  ", name, kind, round(latents.std().item(), 3), flush=True)
        if decoded: self.arrays[f"{name}.decoded"] = pipe.vae.decode(latents / pipe.vae.config.scaling_factor).sample.half()
        self.cases.append({"name": name, "family": family, "prompt": PROMPT, "negative_prompt": negative, "seed": seed, "steps": steps, "cfg": cfg, "height": height, "width": width, "scheduler": scheduler, **told,
                           **({"image": f"picture.{height}x{width}"} if image else {}), **({"mask": f"mask.{masked}.{height}x{width}"} if masked else {}),
                           **({"control": [{"net": n, "image": f"map.{i}.{height}x{width}", "scale": s, "start": a, "end": b} for i, (n, s, a, b) in enumerate(controls)]} if controls else {})})


def main(families, out):
    torch.set_num_threads(1); out = Path(out); r = Recorder(Path(families))
    for name in SCHEDULERS:
        for strength in (0.3, 0.75, 1.0): r.case(f"image-{name}-{strength}", "sd15", scheduler=name, strength=strength, decoded=name == "ddim")
    for name in ("ddim", "pndm", "euler", "dpmpp_2m_karras"): r.case(f"image-velocity-{name}", "sd21", (32, 48), scheduler=name, strength=0.75, seed=2**32 - 1)
    r.case("image-plain", "sd15", (72, 104), steps=7, cfg=1.0, strength=0.5, negative=None); r.case("image-lcm-model", "lcm", steps=4, cfg=8.0, strength=0.5, negative=None)
    r.case("image-xl", "sdxl", (32, 48), strength=0.5, decoded=True); r.case("image-xl-no-negative", "sdxl", (32, 48), strength=0.8, scheduler="dpmpp_2m", negative=None)
    for name in (None, "ddim", "euler_a", "heun", "dpmpp_2m_sde_karras", "unipc", "dpm2_a", "lcm"): r.case(f"mask-{name}", "sd15", (64, 96), scheduler=name, strength=0.75, masked="rectangle", decoded=name == "ddim")
    for strength in (0.3, 1.0): r.case(f"mask-{strength}", "sd15", (72, 56), strength=strength, masked="rectangle", scheduler="euler_a")
    r.case("mask-grey", "sd15", (64, 96), strength=1.0, masked="grey", cfg=1.0); r.case("mask-xl", "sdxl", (32, 48), strength=0.6, masked="rectangle")
    for strength in (0.3, 0.75, 1.0): r.case(f"inpainting-{strength}", "inpainting", strength=strength, masked="rectangle", decoded=strength == 0.75)
    r.case("inpainting-grey", "inpainting", (72, 56), strength=0.5, masked="grey", cfg=1.0, scheduler="euler_a", seed=11)
    r.case("changed", "instruct-pix2pix", image_guidance=1.5, decoded=True); r.case("changed-more", "instruct-pix2pix", (72, 56), image_guidance=2.0, cfg=7.0, scheduler="euler_a"); r.case("changed-unguided", "instruct-pix2pix", image_guidance=1.5, cfg=1.0)
    base, _ = r.model("sd15"); second = control(base.unet, 61, (4, 8, 8, 8)); r.made["sd15/second"] = second
    one = [("sd15/control", 0.8, 0.0, 1.0)]; two = [("sd15/control", 0.7, 0.0, 0.6), ("sd15/second", 1.3, 0.25, 1.0)]
    r.case("control", "sd15", (64, 96), image=False, controls=one, decoded=True); r.case("control-ends", "sd15", image=False, controls=[("sd15/control", 1.5, 0.25, 0.75)], scheduler="heun", steps=6)
    r.case("control-unguided", "sd15", (72, 56), image=False, controls=one, cfg=1.0, scheduler="euler_a"); r.case("control-two", "sd15", (64, 96), image=False, controls=two)
    r.case("control-image", "sd15", controls=two, strength=0.75, scheduler="ddim"); r.case("control-mask", "sd15", (64, 96), controls=one, strength=0.75, masked="rectangle", scheduler="euler")
    r.case("control-xl", "sdxl", (32, 48), image=False, controls=[("sdxl/control", 0.8, 0.0, 1.0)], decoded=True); r.case("control-xl-ends", "sdxl", (32, 48), image=False, controls=[("sdxl/control", 0.8, 0.2, 0.5)], negative=None)
    # ControlNets of a model of nine channels see four of them, as those of other models.
    nine, _ = r.model("inpainting"); fourth = control(diffusers.UNet2DConditionModel.from_config({**nine.unet.config, "in_channels": 4}), 63, (4, 8, 8, 8)); r.made["inpainting/fourth"] = fourth
    r.case("control-inpainting", "inpainting", controls=[("inpainting/fourth", 0.8, 0.0, 1.0)], strength=0.75, masked="rectangle"); r.case("control-inpainting-ends", "inpainting", (72, 56), controls=[("inpainting/fourth", 1.2, 0.25, 0.75)], strength=1.0, masked="rectangle", scheduler="euler")
    wide, _ = r.model("sdxl"); third = control(wide.unet, 62, (4, 8, 8)); r.made["sdxl/third"] = third
    r.case("control-xl-file", "sdxl", (32, 48), image=False, controls=[("sdxl/third", 0.9, 0.0, 1.0)]); r.case("control-xl-image", "sdxl", (32, 48), controls=[("sdxl/control", 0.7, 0.0, 0.5), ("sdxl/third", 1.2, 0.25, 1.0)], strength=0.75)
    r.case("control-xl-mask", "sdxl", (32, 48), controls=[("sdxl/third", 1.0, 0.0, 1.0)], strength=0.6, masked="rectangle")
    for name, net in (("second", second), ("third", third), ("fourth", fourth)): put(out / f"{name}.safetensors", save({k: v.contiguous().clone() for k, v in renamed(net, ldm_unet(net, "control_model.")).items()}))
    put(out / "expected.safetensors", save({k: (v.half() if v.dtype == torch.uint8 else v).contiguous() for k, v in r.arrays.items()})); (out / "cases.json").write_text(json.dumps(r.cases, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
