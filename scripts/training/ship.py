"""ship.py REPO DEST: a new decoder (SHAPES_OUT/vae) for the model of REPO whose other parts stay: DEST/models/shapes
is REPO's with another vae_decoder/model.onnx, DEST/goldens are REPO's with pictures drawn anew from their latents."""
import shutil, sys, torch
from pathlib import Path
from diffusers import AutoencoderKL
from diffusers.image_processor import VaeImageProcessor
from safetensors.torch import load_file
import onnx_layout
from common import OUT
repo, dest = Path(sys.argv[1]), Path(sys.argv[2]); torch.set_num_threads(1)
made = dest / "models/shapes/vae_decoder/model.onnx"; keep = made.read_bytes()
shutil.rmtree(dest / "models/shapes"); shutil.copytree(repo / "models/shapes", dest / "models/shapes"); made.write_bytes(keep)
vae = AutoencoderKL.from_pretrained(OUT / "vae").eval(); onnx_layout.half_weights(vae); p = VaeImageProcessor()
for name in ("shapes", "lora"):
    old = repo / "test/golden/data" / name; new = dest / "goldens" / name; shutil.rmtree(new, ignore_errors=True); shutil.copytree(old, new)
    for k, z in load_file(old / "pipeline.safetensors").items():
        png = new / f"{k.split('.')[0]}.png"
        if not png.exists(): continue   # a case with only_latents
        with torch.no_grad(): p.postprocess(vae.decode(z).sample, output_type="pil")[0].save(png)
shutil.rmtree(dest / "models/lora", ignore_errors=True)
print(sum(f.stat().st_size for f in (dest / "models/shapes").rglob("*") if f.is_file()))
