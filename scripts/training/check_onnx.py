"""check_onnx.py MODEL GOLDENS: runs a model folder with onnxruntime and diffusers' schedulers, compares with
recorded pipelines."""
import json, sys
from pathlib import Path
import numpy as np, onnxruntime as ort, torch, diffusers
from transformers import CLIPTokenizer
from safetensors.torch import load_file

model, gold = Path(sys.argv[1]), Path(sys.argv[2])
so = ort.SessionOptions(); so.intra_op_num_threads = 1; so.log_severity_level = 3
S = {n: ort.InferenceSession(str(model / n / "model.onnx"), so, providers=["CPUExecutionProvider"]) for n in ("text_encoder", "unet", "vae_decoder")}
NP = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
cfg = json.loads((model / "tokenizer/tokenizer_config.json").read_text())
tok = CLIPTokenizer(str(model / "tokenizer/vocab.json"), str(model / "tokenizer/merges.txt"), pad_token=cfg["pad_token"], model_max_length=77)
sc = json.loads((model / "scheduler/scheduler_config.json").read_text())
vae = json.loads((model / "vae_decoder/config.json").read_text()); factor = 2 ** (len(vae["block_out_channels"]) - 1)
arrays = load_file(gold / "pipeline.safetensors")


def run(name, **feeds):
    types = {i.name: (NP[i.type], i.shape) for i in S[name].get_inputs()}
    return S[name].run(None, {k: np.asarray(v).astype(types[k][0]).reshape(() if types[k][1] == [] else np.shape(v)) for k, v in feeds.items()})


for row in json.loads((gold / "pipeline.json").read_text()):
    enc = lambda t: run("text_encoder", input_ids=tok([t], padding="max_length", truncation=True, max_length=77, return_tensors="np").input_ids)[0].astype(np.float32)
    cond, unc = enc(row["prompt"]), enc(row["negative_prompt"] or "")
    cls = row.get("scheduler_class") or sc["_class_name"]
    s = getattr(diffusers, cls).from_config({k: v for k, v in sc.items() if not k.startswith("_")} | row.get("scheduler_config", {})); s.set_timesteps(row["steps"])
    g = torch.Generator().manual_seed(row["seed"])
    lat = torch.randn((1, vae["latent_channels"], row["height"] // factor, row["width"] // factor), generator=g) * s.init_noise_sigma
    cfgon = row["cfg"] > 1
    import inspect
    kw = {"generator": g} if "generator" in inspect.signature(s.step).parameters else {}
    for t in s.timesteps:
        x = s.scale_model_input(torch.cat([lat, lat]) if cfgon else lat, t)
        rank1 = len([i for i in S["unet"].get_inputs() if i.name == "timestep"][0].shape) == 1
        e = torch.from_numpy(run("unet", sample=x.numpy(), timestep=np.full(len(x), float(t)) if rank1 else float(t), encoder_hidden_states=np.concatenate([unc, cond]) if cfgon else cond)[0].astype(np.float32))
        if cfgon: u, c = e.chunk(2); e = u + row["cfg"] * (c - u)
        lat = s.step(e, t, lat, **kw).prev_sample
    import os
    from PIL import Image
    img = run("vae_decoder", latent_sample=(lat / vae["scaling_factor"]).numpy())[0].astype(np.float32).clip(-1, 1) * 0.5 + 0.5
    k = row.get("index"); a, b = arrays[f"{k}.latents"], arrays.get(f"{k}.image")
    if b is None and (gold / f"{k}.png").exists():
        b = torch.from_numpy(np.asarray(Image.open(gold / f"{k}.png"), dtype=np.float32) / 255).permute(2, 0, 1)[None]; img = np.round(img * 255) / 255
    line = f"{model.name} {row['prompt'][:30]!r} {cls} latents max abs {(a - lat).abs().max():.2e}"
    if b is not None: line += f" image PSNR {10 * np.log10(1 / max(1e-12, ((b.numpy() - img) ** 2).mean())):.1f} dB"
    print(line)
