"""gen.py FOLDER SEED: samples of the U-Net with their captions and specs, until killed; one file
for 48 samples."""
import random, sys, time, torch
torch.set_num_threads(1)
from pathlib import Path
from common import CELL, LATENT_CHANNELS, SIZE, parts, sample_latents
import scenes as SC
out = Path(sys.argv[1]); out.mkdir(exist_ok=True); seed = int(sys.argv[2]); rng = random.Random(seed); torch.manual_seed(seed)
unet, text, tok = parts(); KEEP = {"one": 0.5, "two": 1.0, "many": 1.0}


def mode_of(spec): return "one" if len(spec["items"]) == 1 else "two" if spec["inside"] or any(spec["items"][0][k] != spec["items"][1][k] for k in ("shape", "color", "finish")) or spec["items"][0]["r"] > 0.15 else "many"


n = 0
while True:
    f = rng.choices(list(SIZE), [0.6, 0.2, 0.2])[0]; h, w = SIZE[f]; rows = []
    while len(rows) < 48:
        c, s = SC.sample(rng, w / h)
        if rng.random() < KEEP[mode_of(s)]: rows.append((c, s))
    steps = rng.choice([14, 18, 25]); cfg = torch.tensor([rng.choice([3, 3, 3, 3, rng.uniform(1.5, 4), 5, 7.5, 7.5]) for _ in rows])
    z = [sample_latents(unet, text, tok, [c for c, _ in rows[i:i + 16]], torch.randn(16, LATENT_CHANNELS, h // CELL, w // CELL), cfg[i:i + 16], steps) for i in range(0, 48, 16)]
    torch.save({"format": f, "rows": rows, "cfg": cfg, "steps": steps, "z": torch.cat(z).half()}, out / f"{seed}-{n}.pt"); n += 1; print(seed, n, f, steps, time.process_time(), flush=True)
