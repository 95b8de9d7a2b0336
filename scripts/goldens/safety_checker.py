"""Makes a tiny safety checker of random weights, and records what diffusers' says of fifty pictures.

python scripts/goldens/safety_checker.py test/golden/families/safety

The pictures are made of whole numbers by `picture`, which test/support/safety-pictures.ts has too. They are scaled by
Pillow, as the pipelines of Stable Diffusion were released with; the thresholds are such that some are flagged, and some
of those only because a special concept lowers the others'.
"""

import gzip
import json
import re
import sys
from pathlib import Path

import numpy as np
import torch
from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker, cosine_distance
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import CLIPConfig
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

from transformer_models import randomise

SIZES = [(512, 512), (512, 768), (768, 512), (640, 368), (256, 256), (120, 90), (224, 224), (225, 301)]
COUNT = 50


def triangle(n):
    return np.minimum(np.abs(n % 512 - 256), 255)


def picture(i):
    width, height = SIZES[i % len(SIZES)]
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    waves = triangle(x * (1 + i % 7) + c * (i % 5) * 60 + i * 37) + triangle(y * (1 + i % 6) + c * 85 + i * 11)
    noise = (x * 7919 + y * 104729 + c * 1299709 + i * 15485863) % 8191 % 256
    return ((waves * (i % 4 + 1) + noise * (3 - i % 4)) // (2 * (i % 4 + 1) + 3 - i % 4)).astype(np.uint8)


def checker():
    vision = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 224, "patch_size": 14, "hidden_act": "quick_gelu"}
    return randomise(StableDiffusionSafetyChecker(CLIPConfig(vision_config=vision, text_config={"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 10}, projection_dim=16)), 9)


@torch.no_grad()
def main(folder):
    model = checker(); pictures = [Image.fromarray(picture(i)) for i in range(COUNT)]
    pixels = CLIPImageProcessorPil(resample=3, size={"shortest_edge": 224}, crop_size=224)(pictures, return_tensors="pt").pixel_values
    embeds = model.visual_projection(model.vision_model(pixels)[1])
    special, concepts = (cosine_distance(embeds, one) for one in (model.special_care_embeds, model.concept_embeds))
    for weights, cosines, share in ((model.special_care_embeds_weights, special, 0.9), (model.concept_embeds_weights, concepts, 0.99)):
        weights.copy_(torch.quantile(cosines, share, dim=0).half().float())
    # The first concept is just below its threshold in a picture in which the first special one is found, and no other.
    others = (concepts[:, 1:] > model.concept_embeds_weights[1:]).any(1)
    cared = int((concepts[:, 0] - 2 * others).argmax())
    model.special_care_embeds_weights[0] = (special[cared, 0] - 0.002).half().float()
    model.concept_embeds_weights[0] = (concepts[cared, 0] + 0.005).half().float()
    special, concepts = special - model.special_care_embeds_weights, concepts - model.concept_embeds_weights
    flags = model(pixels, [np.zeros(1) for _ in pictures])[1]; plain = (concepts > 0).any(1).tolist()
    print(f"{sum(flags)} of {COUNT} are flagged, {sum(f and not p for f, p in zip(flags, plain))} of them by a special concept; the score nearest to a threshold is {concepts.abs().min():.1e}")
    short = lambda rows: [[round(float(v), 6) for v in row] for row in rows]
    save(model, folder, {"flags": flags, "pixels": short(pixels.flatten(1)[:, ::15013]), "special_scores": short(special), "concept_scores": short(concepts)})


def save(model, folder, expected):
    at = Path(folder) / "safety_checker"; at.mkdir(parents=True, exist_ok=True); model.save_pretrained(at)
    file = at / "model.safetensors"; tensors = load_file(file)
    # As the released ones are called, which an older transformers has written.
    released = lambda name: name if name.startswith("vision_model.vision_model.") else re.sub("^vision_model\\.", "vision_model.vision_model.", name)
    save_file({released(name): t.half() for name, t in tensors.items()}, file, {"format": "pt"})
    with gzip.GzipFile(f"{file}.gz", "wb", mtime=0) as packed: packed.write(file.read_bytes())
    file.unlink()
    (Path(folder) / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
