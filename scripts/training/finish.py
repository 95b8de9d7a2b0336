"""finish.py DEST [WEIGHTS]: from trained parts to DEST/models/shapes, DEST/models/lora and DEST/goldens.

Parts are taken from SHAPES_OUT (vae, unet, text_encoder, tokenizer, lora as the training scripts leave them); with
WEIGHTS, a folder of float16 safetensors (vae, unet, text_encoder) is unpacked into SHAPES_OUT first. Run
train_lora.py before it to have the LoRA's files and goldens."""
import json, shutil, subprocess, sys
from pathlib import Path
import torch
from safetensors.torch import load_file
from common import OUT, unet_model, text_model
from decoder import vae_model
import onnx_layout

here, dest = Path(__file__).parent, Path(sys.argv[1])
if not (OUT / "tokenizer/vocab.json").exists(): shutil.copytree(here / "tokenizer", OUT / "tokenizer", dirs_exist_ok=True)
if len(sys.argv) > 2:
    w = Path(sys.argv[2]); f32 = lambda n: {k: v.float() for k, v in load_file(w / f"{n}.safetensors").items()}
    n = len(json.loads((OUT / "tokenizer/vocab.json").read_text()))
    vae, unet, text = vae_model(), unet_model(), text_model(n)
    vae.load_state_dict(f32("vae"), strict=False); unet.load_state_dict(f32("unet")); text.load_state_dict(f32("text_encoder"))
    for m, name in ((vae, "vae"), (unet, "unet"), (text, "text_encoder")): m.save_pretrained(OUT / name)
import record
pipe = record.pipeline(OUT)
onnx_layout.write(pipe, dest / "models/shapes", store="float16", fold=False, timestep_dtype=torch.float32)
print("model", sum(f.stat().st_size for f in (dest / "models/shapes").rglob("*") if f.is_file()) // 1000, "kB")
for name, folder in (("public", dest / "goldens/shapes"), ("held", dest / "heldout")):
    cases = here / f"{name}.json"
    if cases.exists(): record.record(record.pipeline(OUT), json.loads(cases.read_text()), folder)
subprocess.run([sys.executable, here.parent / "goldens/tokens.py", dest / "models/shapes/tokenizer", dest / "goldens/tokens-shapes.json"], check=True)
if (OUT / "lora").exists():
    shutil.copytree(OUT / "lora", dest / "models/lora", dirs_exist_ok=True)
    subprocess.run([sys.executable, here / "record_lora.py", dest / "goldens/lora"], check=True)
subprocess.run([sys.executable, here / "check_onnx.py", dest / "models/shapes", dest / "goldens/shapes"], check=True)
