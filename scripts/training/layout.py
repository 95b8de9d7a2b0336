"""layout.py PARTS [steps cfg]: how often the two objects of a caption stand where they should, seen from the latents
alone (the judge's scenes with seeds 1 and 2)."""
import json, sys, torch
torch.set_num_threads(1)
from lib import *
from fields import COLOR, PALETTE
p = sys.argv[1]; steps = int(sys.argv[2]) if len(sys.argv) > 2 else 10; cfg = float(sys.argv[3]) if len(sys.argv) > 3 else 3
mean, std = (v.view(1, -1, 1, 1) for v in torch.load("parts/fields_stats.pt")); unet, text, tok = parts(p)
extra = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {}
if extra: SCHEDULERS["ddim"] = ("DDIMScheduler", extra)
hit = {"apart": [0, 0], "inside": [0, 0]}
for seed in (1, 2):
    scenes = json.loads(Path(f"scenes-{seed}.json").read_text())
    for f, (h, w) in SIZE.items():
        idx = [i for i, s in enumerate(scenes) if s["format"] == f and s["mode"] == "two"]
        for k in range(0, len(idx), 16):
            part = idx[k:k + 16]; noise = torch.cat([torch.randn((1, 22, h // 32, w // 32), generator=torch.Generator().manual_seed(seed * 1000 + i)) for i in part])
            z = sample_latents(unet, text, tok, [scenes[i]["caption"] for i in part], noise, cfg, steps, "ddim") * std + mean
            short = min(h, w); Y, X = torch.meshgrid((torch.arange(h // 32) + 0.5) * 32 / short - 0.5 * h / short, (torch.arange(w // 32) + 0.5) * 32 / short - 0.5 * w / short, indexing="ij")
            for i, v in zip(part, z):
                s = scenes[i]; a, b = s["items"]; ca, cb = (PALETTE[COLOR.index(it["color"])].view(3, 1) for it in (a, b))
                if s["relation"] == "and": continue
                if s["relation"] == "inside":
                    near = torch.hypot(X, Y) < 0.1; inner = (v[10] > 0.1); ok = bool((inner & near).any()) and ((v[6:9][:, inner & near] - ca).abs().mean() < 0.25) and ((v[3:6][:, v[9] > 0.2] - cb).abs().mean() < 0.3) if (v[9] > 0.2).any() else False
                    hit["inside"][0] += bool(ok); hit["inside"][1] += 1; continue
                da = [torch.hypot(X - it["x"], Y - it["y"]) < 0.13 for it in (a, b)]
                err = lambda m, c: (v[3:6][:, m] - c).abs().mean().item()
                if a["color"] == b["color"]: continue
                hit["apart"][0] += err(da[0], ca) + err(da[1], cb) < err(da[0], cb) + err(da[1], ca); hit["apart"][1] += 1
print(p, steps, cfg, hit, flush=True)
