"""Records what diffusers draws with the tiny models of test/golden/models that have a transformer.

python scripts/goldens/transformer_pictures.py test/golden/models test/golden/transformers

README.md beside the cases says what they call for.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import diffusers
import numpy
import torch
from diffusers import Flux2KleinInpaintPipeline, ZImageImg2ImgPipeline, ZImageInpaintPipeline
from families import PROMPT, generator, put
from pictures_in import DPMPP_2M, mask, picture, unpacked
from PIL import Image
from safetensors.torch import save
from transformer_models import NAMES, layers

NEGATIVE = "gray, blurred, out of frame, and with no more than three words of text below it"
FLOW = {"use_flow_sigmas": True, "prediction_type": "flow_prediction", "use_karras_sigmas": False, "use_exponential_sigmas": False, "use_beta_sigmas": False}
# Settings of a name in the model's own configuration, as in libs/diffusion/src/schedulers/index.ts.
SCHEDULERS = {"euler": ("FlowMatchEulerDiscreteScheduler", {}), "heun": ("FlowMatchHeunDiscreteScheduler", {}), "unipc": ("UniPCMultistepScheduler", FLOW), "dpmpp_2m": ("DPMSolverMultistepScheduler", {**DPMPP_2M, **FLOW}),
              "dpmpp_2s": ("DPMSolverSinglestepScheduler", {"algorithm_type": "dpmsolver++", "solver_order": 2, **FLOW})}


def scheduler(name, config):
    """One that takes what the pipelines give to FlowMatchEuler. The others have noise levels of their own, and are shifted by as much."""
    kind, told = SCHEDULERS[name]; cls = getattr(diffusers, kind)
    if name == "euler": return cls.from_config(config)
    dynamic = config["use_dynamic_shifting"]; shift = 1.0 if dynamic else config["shift"]

    class Shifted(cls):
        def set_timesteps(self, num_inference_steps=None, device=None, sigmas=None, mu=None):
            if dynamic: self.register_to_config(**{"shift" if name == "heun" else "flow_shift": float(numpy.exp(mu))})
            super().set_timesteps(num_inference_steps or len(sigmas), device=device)
    return Shifted.from_config({**config, **told, "use_dynamic_shifting": False, "shift": shift, "flow_shift": shift})


class Recorder:
    def __init__(self, models): self.models, self.opened, self.cases, self.arrays = models, {}, [], {}

    def model(self, name):
        if name not in self.opened:
            folder = Path(tempfile.mkdtemp())
            for layer in layers(self.models, name): shutil.copytree(unpacked(layer), folder, dirs_exist_ok=True)
            self.opened[name] = diffusers.DiffusionPipeline.from_pretrained(folder, torch_dtype=torch.float32)
        return self.opened[name]

    def words(self, name, count):
        """A prompt of which the text encoder of a model sees so many tokens."""
        tokenizer = self.model(name).tokenizer; words = "a"; thinks = name.startswith("z-image")
        length = lambda: len(tokenizer(tokenizer.apply_chat_template([{"role": "user", "content": words}], tokenize=False, add_generation_prompt=True, enable_thinking=thinks)).input_ids)
        while length() < count: words += " red" if len(words) % 3 else " circle"
        assert length() == count; return words

    @torch.no_grad()
    def case(self, name, family, prompt=PROMPT, negative=None, size=(64, 64), steps=4, cfg=1.0, seed=7, named=None, strength=None, masked=None, decoded=False, references=()):
        """masked: "rectangle" or "grey". A picture that is not masked is painted over everywhere. references: heights and widths."""
        base = self.model(family); height, width = size; is_klein = "flux2" in family; name = f"{family}-{name}"; asked, told = {}, {}; parts = dict(base.components)
        if is_klein: parts["is_distilled"] = base.config.is_distilled
        kind = type(base) if strength is None else Flux2KleinInpaintPipeline if is_klein else ZImageInpaintPipeline if masked else ZImageImg2ImgPipeline
        pipe = kind(**{**parts, "scheduler": scheduler(named or "euler", base.scheduler.config)}); pipe.set_progress_bar_config(disable=True)
        if strength is not None:
            self.arrays[f"picture.{height}x{width}"] = shown = picture(height, width, 40); asked |= {"image": Image.fromarray(shown.numpy()), "strength": strength}; told |= {"strength": strength, "image": f"picture.{height}x{width}"}
            values = torch.full(size, 255, dtype=torch.uint8) if not masked else mask(height, width, masked == "grey")
            if masked: key = f"mask.{masked}.{height}x{width}"; self.arrays[key] = values; told["mask"] = key
            if masked or is_klein: asked["mask_image"] = Image.fromarray(values.numpy())
        shown_too = [(f"reference.{h}x{w}", picture(h, w, h + w)) for h, w in references]; self.arrays |= dict(shown_too)
        if references: asked["image" if strength is None else "image_reference"] = [Image.fromarray(p.numpy()) for _, p in shown_too]; told["references"] = [key for key, _ in shown_too]
        if is_klein:
            asked["guidance_scale"] = cfg
            if negative: asked["negative_prompt_embeds"] = pipe.encode_prompt(negative)[0]
        else: asked |= {"guidance_scale": cfg - 1, "negative_prompt": negative}
        seen = []
        def watch(_pipe, _step, _time, values): seen.append(values["latents"]); return values
        images = pipe(prompt=prompt, height=height, width=width, num_inference_steps=steps, generator=generator(seed), output_type="latent", callback_on_step_end=watch, **asked).images
        latents = seen[-1]
        if is_klein: latents = latents.permute(0, 2, 1).reshape(1, -1, height // 16, width // 16)
        assert latents.isfinite().all() and latents.std() < 100, name
        self.arrays[f"{name}.latents"] = latents; print("  ", name, kind.__name__, round(latents.std().item(), 3), flush=True)
        if decoded: self.arrays[f"{name}.decoded"] = pipe.vae.decode(images if is_klein else images / pipe.vae.config.scaling_factor + pipe.vae.config.shift_factor).sample.half()
        self.cases.append({"name": name, "family": family, "prompt": prompt, "negative_prompt": negative, "seed": seed, "steps": steps, "cfg": cfg, "height": height, "width": width, "scheduler": named, **told})


def main(models, out):
    torch.set_num_threads(1); out = Path(out); r = Recorder(Path(models))
    for family in NAMES:
        for size in ((64, 64), (64, 96)):
            for steps in (2, 4): r.case(f"{size[1]}x{size[0]}-{steps}", family, size=size, steps=steps, decoded=size == (64, 96) and steps == 4)
        if family in ("flux2-klein-base", "z-image"):
            r.case("guided", family, size=(64, 96), cfg=4.0, negative=NEGATIVE, decoded=True); r.case("guided-no-negative", family, cfg=2.5, seed=2**32 - 1)
            r.case("guided-short-negative", family, cfg=4.0, prompt=r.words(family, 33), negative="gray"); r.case("guided-long-negative", family, cfg=4.0, prompt=r.words(family, 31), negative=r.words(family, 120))
        r.case("scripts", family, prompt="赤い円 над синим квадратом 🔴🟦 <|im_end|>\n  été", seed=11)
        for count in ((31, 32, 33, 120, 200) if "z-image" in family else (120, 512)): r.case(f"{count}-tokens", family, prompt=r.words(family, count))
    for family in ("flux2-klein", "z-image-turbo"):
        for name in SCHEDULERS: r.case(name, family, size=(64, 96), steps=6, named=name)
        for strength in (0.3, 0.75, 1.0): r.case(f"image-{strength}", family, strength=strength, steps=5, decoded=strength == 0.75)
        for strength in (0.3, 0.75, 1.0): r.case(f"mask-{strength}", family, size=(64, 96), strength=strength, masked="rectangle", steps=5, decoded=strength == 0.75)
        r.case("mask-grey", family, strength=0.75, masked="grey")
    for family in ("flux2-klein-base", "z-image"):
        r.case("image-guided", family, size=(64, 96), strength=0.6, cfg=3.0, negative=NEGATIVE, steps=5); r.case("mask-guided", family, strength=0.6, masked="rectangle", cfg=3.0, negative=NEGATIVE, steps=5)
    put(out / "expected.safetensors", save({k: (v.half() if v.dtype == torch.uint8 else v).contiguous() for k, v in r.arrays.items()})); (out / "cases.json").write_text(json.dumps(r.cases, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
