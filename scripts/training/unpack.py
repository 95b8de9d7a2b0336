"""unpack.py MODEL: from a model folder back to the parts that the training scripts go on from, in SHAPES_OUT."""
import shutil, sys
from pathlib import Path
import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextModel
from common import OUT

if __name__ == "__main__":
    model = Path(sys.argv[1])
    for kind, name in ((UNet2DConditionModel, "unet"), (CLIPTextModel, "text_encoder"), (AutoencoderKL, "vae")):
        part = kind.from_pretrained(model / name, torch_dtype=torch.float32); part.save_pretrained(OUT / name)
    shutil.copytree(model / "tokenizer", OUT / "tokenizer", dirs_exist_ok=True)
    conv = part.post_quant_conv; torch.save((conv.bias.data, conv.weight.data.diagonal(dim1=0, dim2=1)[0, 0].clone()), OUT / "fields_stats.pt")
