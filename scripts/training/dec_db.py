"""dec_db.py VAE [count [seed]]: how near the decoder comes to scenes from their exact latents; by shape, finish, ground, size."""
import math, random, sys, torch
torch.set_num_threads(1)
from diffusers import AutoencoderKL
from fields import fields
from scenes import render, sample
from collections import defaultdict
vae = AutoencoderKL.from_pretrained(sys.argv[1]).eval(); mean, std = (v.view(1, -1, 1, 1) for v in torch.load("parts/fields_stats.pt"))
def errors(rows, scale=1.0, z=None):
    e = []
    with torch.inference_mode():
        for i in range(0, len(rows), 4):
            z = (fields(rows[i:i + 4]) - mean) / std; z[:, 16:] *= scale
            e += ((vae.decode(z).sample.clamp(-1, 1) - render(rows[i:i + 4])) ** 2).mean((1, 2, 3)).tolist()
    return e
db = lambda e: f"{10 * math.log10(4 / (sum(e) / len(e))):.2f}"
if __name__ == "__main__":
    r = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 77); rows = [sample(r)[1] for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 48)]
    e = errors(rows); print("all", db(e), flush=True)
    by = defaultdict(list)
    for s, v in zip(rows, e):
        by["ground " + s["kind"]].append(v); by["items " + str(len(s["items"])) + (" inside" if s["inside"] else "")].append(v); by["finish " + s["items"][0]["finish"]].append(v)
        by["shape " + s["items"][0]["shape"]].append(v); by["size %.1f" % s["items"][0]["r"]].append(v)
    for k in sorted(by): print(k, len(by[k]), db(by[k]), f"share of all {sum(by[k]) / sum(e):.2f}")
