"""layout.py DEST: the trained parts in SHAPES_OUT as a folder of diffusers, which has all else from models/shapes. Tensors of 1,024 numbers or more are stored as float16."""
import json, shutil, sys
from pathlib import Path
from safetensors.torch import load_file, save_file
from common import OUT

MODEL = Path(__file__).parents[2] / "models/shapes"
PARTS = {"unet": ("diffusers", "UNet2DConditionModel", "diffusion_pytorch_model"), "vae": ("diffusers", "AutoencoderKL", "diffusion_pytorch_model"), "text_encoder": ("transformers", "CLIPTextModel", "model")}


def write(out):
    shutil.rmtree(out, ignore_errors=True); shutil.copytree(MODEL, out, ignore=shutil.ignore_patterns("*.onnx", "*.safetensors", "vae_decoder"))
    for part, (_, _, name) in PARTS.items():
        tensors = load_file(OUT / part / f"{name}.safetensors"); (out / part).mkdir(exist_ok=True)
        if part == "text_encoder": tensors = {k if k.startswith("text_model.") else f"text_model.{k}": v for k, v in tensors.items()}       # the names that most files have
        save_file({k: v.half() if v.numel() >= 1024 and v.is_floating_point() else v for k, v in tensors.items()}, out / part / f"{name}.safetensors", {"format": "pt"})
        config = json.loads((OUT / part / "config.json").read_text()); config.pop("_name_or_path", None)
        (out / part / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    index = {"_class_name": "StableDiffusionPipeline", **{part: list(kind[:2]) for part, kind in PARTS.items()}, "tokenizer": ["transformers", "CLIPTokenizer"], "scheduler": ["diffusers", "PNDMScheduler"],
             "safety_checker": [None, None], "feature_extractor": [None, None], "requires_safety_checker": False}
    (out / "model_index.json").write_text(json.dumps(index, indent=2) + "\n")
    print(sum(f.stat().st_size for f in out.rglob("*") if f.is_file()) / 1e6, "MB")


if __name__ == "__main__": write(Path(sys.argv[1]))
