"""train_text.py MINUTES IN OUT: teaches the text encoder to lay a caption out: each padding token tells what stands in
one place.

The padding tokens take turns: left, right, above, below, middle, inside, ground. One linear head reads colour, shape and
finish from all of them, so that the U-Net finds what stands in a place by attending to its tokens. A term keeps the
caption's own tokens near what they were."""
import random, sys, time, os
import torch, torch.nn.functional as F
from torch import nn
torch.set_num_threads(int(os.environ.get("THREADS", 1)))
from pathlib import Path
from transformers import CLIPTextModel
from common import ids_of, tokenizer
import scenes as SC
minutes, src, dst = float(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]); torch.manual_seed(1); rng = random.Random(time.time()); B = int(os.environ.get("BATCH", 48))
KEEP, LR = float(os.environ.get("KEEP", 0.3)), float(os.environ.get("LR", 6e-4))
text, old = CLIPTextModel.from_pretrained(src / "text_encoder"), CLIPTextModel.from_pretrained(src / "text_encoder").eval()
tok = tokenizer()
SLOTS, COL, FIN, KIND = "WENSCIG", list(SC.COLORS), ["flat", "outlined", "glossy"], ["plain", "gradient", "striped", "dotted"]
PLACES = {"and": "WE", "left of": "WE", "right of": "EW", "above": "NS", "below": "SN", "inside": "IC"}


def labels(caption, spec):
    """-> (7 slots, 4): colour, shape, finish, number; 0: nothing there. The ground's shape is its kind."""
    out = torch.zeros(7, 4, dtype=torch.long); rel = next((r for r in PLACES if f" {r} " in caption), None); items = spec["items"][::-1] if spec["inside"] else spec["items"]
    for slot, it in zip(PLACES[rel] if rel else "C", items):
        out[SLOTS.index(slot)] = torch.tensor([COL.index(it["color"]) + 1, SC.SHAPES.index(it["shape"]) + 1, FIN.index(it["finish"]) + 1, 1 if rel else len(items)])
    out[6] = torch.tensor([COL.index(spec["ground"]) + 1, KIND.index(spec["kind"]) + 11, 0, 0])
    return rel, out


def scene():
    while True:
        c, s = SC.sample(rng, rng.choice([1, 1, 1, 1.5, 2 / 3])); two = any(f" {r} " in c for r in PLACES)
        if two or rng.random() < 0.3: return c, s


SIZES_ = (13, 15, 4, 5); lin = nn.ModuleList([nn.Linear(128, n) for n in SIZES_]); slow, quick = list(text.parameters()), list(lin.parameters())
opt = torch.optim.AdamW([{"params": slow, "peak": LR}, {"params": quick, "peak": 4e-3}], lr=LR, betas=(0.9, 0.98), weight_decay=1e-3, fused=True)
start, step, acc, drift = time.time(), 0, {}, []; slot_of = torch.arange(77) % 7
while time.time() - start < minutes * 60:
    frac = (time.time() - start) / (minutes * 60)
    for g in opt.param_groups: g["lr"] = g["peak"] * (min(1, max(0, step - 60) / 100) if g["peak"] == LR else min(1, (step + 1) / 10)) * (0.03 + 0.97 * min(1, (1 - frac) / 0.5))
    rows = [scene() for _ in range(B)]; ids = ids_of(tok, [c for c, _ in rows]); ys = [labels(*r) for r in rows]; y = torch.stack([v for _, v in ys])
    h = text(ids).last_hidden_state
    with torch.no_grad(): h0 = old(ids).last_hidden_state
    eos = (ids == tok.eos_token_id).int().argmax(1, keepdim=True); pad = torch.arange(77) > eos; want = y[:, slot_of]          # (B, 77, 4)
    g = h[pad]; w = want[pad]; loss = 0; names = ("color", "shape", "finish", "n"); hits = []
    for k, n in enumerate(names):
        o = lin[k](g); loss = loss + F.cross_entropy(o, w[:, k]) * (1, 1, 0.5, 0.5)[k]; hits.append(o.argmax(1) == w[:, k])
    directed = torch.tensor([r in ("left of", "right of", "above", "below") for r, _ in ys])[:, None].expand(-1, 77)[pad]; inside = torch.tensor([r == "inside" for r, _ in ys])[:, None].expand(-1, 77)[pad]
    for m, name in ((directed & (w[:, 3] > 0), "directed"), (inside & (w[:, 3] > 0), "inside"), (~directed & ~inside, "other")):
        for k in (0, 1): acc.setdefault(f"{name} {names[k]}", []).append((hits[k][m].sum().item(), m.sum().item()))
    far = ((h - h0) ** 2).mean(2); far = far[~pad].mean() + 0.05 * far[pad].mean(); (loss + KEEP * far).backward(); torch.nn.utils.clip_grad_norm_(slow, 3.0); opt.step(); opt.zero_grad(); step += 1; drift.append(far.item())
    if step % 50 == 0: print(f"{step} {time.time() - start:.0f}s loss {loss.item():.3f} drift {sum(drift) / 50:.4f}", {k: round(sum(a for a, _ in v) / max(1, sum(b for _, b in v)), 3) for k, v in acc.items()}, flush=True); acc, drift = {}, []
    if step % 200 == 0: text.save_pretrained(dst / "text_encoder")
text.save_pretrained(dst / "text_encoder"); print("end", step)
