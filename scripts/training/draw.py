"""draw.py SCENES.json SEED OUT.pt [cfg steps scheduler parts unet text only]: latents of the judge's scenes."""
import json, sys, time, torch
torch.set_num_threads(1)
from lib import *
a = sys.argv[1:] + [""] * 9
scenes = json.loads(Path(a[0]).read_text()); seed = int(a[1]); cfg, steps, sch = float(a[3] or 3), int(a[4] or 25), a[5] or "ddim"
unet, text, tok = parts(a[6] or "parts", a[7] or "unet", a[8] or "text_encoder"); only = a[9]
out = [None] * len(scenes); t0 = time.process_time()
for f, (h, w) in SIZE.items():
    idx = [i for i, s in enumerate(scenes) if s["format"] == f and (not only or s["mode"] in only.split(","))]
    for k in range(0, len(idx), 16):
        part = idx[k:k + 16]
        noise = torch.cat([torch.randn((1, 22, h // 32, w // 32), generator=torch.Generator().manual_seed(seed * 1000 + i)) for i in part])
        z = sample_latents(unet, text, tok, [scenes[i]["caption"] for i in part], noise, cfg, steps, sch, generator=torch.Generator().manual_seed(1))
        for i, v in zip(part, z): out[i] = v.clone()
torch.save(out, a[2]); print(a[2], f"{time.process_time() - t0:.0f}s", flush=True)
