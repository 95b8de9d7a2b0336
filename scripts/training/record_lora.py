"""record_lora.py OUT_GOLDENS: pipelines with the LoRA (diffusers' and kohya's file), at two scales. The picture is recorded of the first only,
because no LoRA changes the decoder."""
import json, sys
from pathlib import Path
import torch
from safetensors.torch import save_file
from common import OUT
from record import CLASSES, SCHED, pipeline
import diffusers
CASES = [dict(prompt="a red zwx robot on a white background", steps=20, cfg=3.0, seed=5, height=512, width=512, scale=1.0),
         dict(prompt="a red zwx robot on a white background", steps=20, cfg=3.0, seed=5, height=512, width=512, scale=0.6, only_latents=True),
         dict(prompt="a blue zwx robot on a yellow background", steps=20, cfg=3.0, seed=88, height=768, width=512, scale=1.0, only_latents=True)]
out = Path(sys.argv[1]); out.mkdir(parents=True, exist_ok=True); arrays, rows = {}, []
for name in ("diffusers", "kohya"):
    pipe = pipeline(); pipe.scheduler = getattr(diffusers, CLASSES["ddim"][0]).from_config(SCHED)
    pipe.load_lora_weights(str(OUT / "lora"), weight_name=f"zwx-robot-{name}.safetensors", adapter_name="robot")
    for i, c in enumerate(CASES):
        pipe.set_adapters(["robot"], [c["scale"]])
        g = torch.Generator().manual_seed(c["seed"])
        lat = pipe(prompt=c["prompt"], num_inference_steps=c["steps"], guidance_scale=c["cfg"], height=c["height"], width=c["width"], generator=g, output_type="latent").images
        if name == "diffusers":
            if not c.get("only_latents"):
                with torch.no_grad(): img = pipe.vae.decode(lat).sample
                pipe.image_processor.postprocess(img, output_type="pil")[0].save(out / f"{i}.png")
            arrays[f"{i}.latents"] = lat.contiguous(); rows.append(dict(c, index=i, scheduler="ddim"))
        else: print("kohya against diffusers", i, (arrays[f"{i}.latents"] - lat).abs().max().item())
save_file(arrays, out / "pipeline.safetensors"); (out / "pipeline.json").write_text(json.dumps(rows, indent=1) + "\n")
