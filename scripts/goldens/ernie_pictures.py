"""Records what diffusers draws with the tiny model of test/golden/models/ernie-image, and the token ids of its tokenizer.

python scripts/goldens/ernie_pictures.py test/golden/models test/golden/ernie-image test/golden/data/tokens-mistral.json
"""

import json
import sys
from pathlib import Path

import diffusers
import torch
from families import PROMPT, generator, put
from pictures_in import unpacked
from qwen_tokens import FURTHER, SCRIPTS, sample
from safetensors.torch import save
from tokens import TEXTS
from transformer_models import ERNIE

NEGATIVE = "gray, blurred, out of frame"


@torch.no_grad()
def main(models, out, tokens):
    torch.set_num_threads(1); out = Path(out); cases, arrays = [], {}; pipe = diffusers.DiffusionPipeline.from_pretrained(unpacked(Path(models) / ERNIE), torch_dtype=torch.float32); pipe.set_progress_bar_config(disable=True)

    def case(name, prompt=PROMPT, negative=None, size=(64, 64), steps=4, cfg=1.0, seed=7, decoded=False):
        height, width = size; name = f"{ERNIE}-{name}"
        latents = pipe(prompt=prompt, negative_prompt=negative, height=height, width=width, num_inference_steps=steps, guidance_scale=cfg, generator=generator(seed), output_type="latent").images
        assert latents.isfinite().all() and latents.std() < 100, name
        arrays[f"{name}.latents"] = latents; print("  ", name, round(latents.std().item(), 3), flush=True)
        if decoded:
            bn = pipe.vae.bn; y = latents * torch.sqrt(bn.running_var.view(1, -1, 1, 1) + 1e-5) + bn.running_mean.view(1, -1, 1, 1)
            arrays[f"{name}.decoded"] = pipe.vae.decode(pipe._unpatchify_latents(y)).sample.half()
        cases.append({"name": name, "family": ERNIE, "prompt": prompt, "negative_prompt": negative, "seed": seed, "steps": steps, "cfg": cfg, "height": height, "width": width, "scheduler": None})

    for size in ((64, 64), (64, 96)):
        for steps in (2, 8): case(f"{size[1]}x{size[0]}-{steps}", size=size, steps=steps, decoded=size == (64, 96) and steps == 8)
    case("guided", size=(64, 96), cfg=4.0, negative=NEGATIVE, decoded=True); case("guided-no-negative", cfg=2.5, seed=2**32 - 1)
    case("nothing", prompt=""); case("long", prompt="a red circle over a blue square, " * 40); case("scripts", prompt="赤い円 над синим квадратом 🔴🟦 </s>[INST]\n  été", seed=11)
    put(out / "expected.safetensors", save({k: v.contiguous() for k, v in arrays.items()})); (out / "cases.json").write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")
    texts = [*TEXTS, *(t.replace("<|im_end|>", "</s>").replace("<|im_start|>", "[INST]") for t in FURTHER), *map(sample, SCRIPTS)]
    Path(tokens).write_text(json.dumps({"tokenizer": "transformers TokenizersBackend", "rows": [{"text": text, "input_ids": pipe.tokenizer(text).input_ids} for text in texts]}, ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
