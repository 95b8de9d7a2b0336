"""train_text.py MINUTES IN OUT: teaches the text encoder to say what stands where, not only what is named first and
second.

Linear heads tell from the end token and the padding what stands left, right, above, below, in the middle and inside;
a term keeps all states near what the U-Net knows. Padding sees what is before it only, so that the first 30 tokens
are enough."""
import math, random, sys, time, os
import torch, torch.nn.functional as F
from torch import nn
torch.set_num_threads(1)
from lib import *
import scenes as SC
from transformers import CLIPTextModel
minutes, src, dst = float(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]); torch.manual_seed(1); rng = random.Random(time.time()); N, B = 30, int(os.environ.get("BATCH", 64))
KEEP = float(os.environ.get("KEEP", 4)); LR = float(os.environ.get("LR", 6e-4))
text, old = CLIPTextModel.from_pretrained(src / "text_encoder"), CLIPTextModel.from_pretrained(src / "text_encoder").eval()
tok = CLIPTokenizer(str(src / "tokenizer/vocab.json"), str(src / "tokenizer/merges.txt"), model_max_length=77)
SLOTS, COL, FIN, KIND = "WENSCI", list(SC.COLORS), ["flat", "outlined", "glossy"], ["plain", "gradient", "striped", "dotted"]
heads = {"ground": 12, "kind": 4, "n": 4} | {f"{s}{k}": n + 1 for s in SLOTS for k, n in (("color", 12), ("shape", 10), ("finish", 3))}
PLACES = {"and": "WE", "left of": "WE", "right of": "EW", "above": "NS", "below": "SN", "inside": "IC"}


def labels(caption, spec):
    out = {k: 0 for k in heads}; out |= {"ground": COL.index(spec["ground"]), "kind": KIND.index(spec["kind"]), "n": len(spec["items"]) - 1}
    rel = next((r for r in PLACES if f" {r} " in caption), None); items = spec["items"][::-1] if spec["inside"] else spec["items"]
    for slot, it in zip(PLACES[rel] if rel else "C", items):
        out[slot + "color"], out[slot + "shape"], out[slot + "finish"] = COL.index(it["color"]) + 1, SC.SHAPES.index(it["shape"]) + 1, FIN.index(it["finish"]) + 1
    return rel, out


def scene():
    while True:
        c, s = SC.sample(rng, rng.choice([1, 1, 1, 1.5, 2 / 3])); two = any(f" {r} " in c for r in PLACES)
        if two or rng.random() < 0.2: return c, s


lin = nn.ModuleDict({k: nn.Linear(128, n) for k, n in heads.items()}); slow, quick = list(text.parameters()), list(lin.parameters())
opt = torch.optim.AdamW([{"params": slow, "peak": LR}, {"params": quick, "peak": 4e-3}], lr=LR, betas=(0.9, 0.98), weight_decay=1e-3, fused=True)
t0, step, acc, drift, start = time.process_time(), 0, {}, [], time.time()
while time.time() - start < minutes * 60:
    frac = (time.time() - start) / (minutes * 60)
    for g in opt.param_groups: g["lr"] = g["peak"] * min(1, (step + 1) / (60 if g["peak"] == LR else 10)) * (0.03 + 0.97 * min(1, (1 - frac) / 0.5))
    rows = [scene() for _ in range(B)]; ids = ids_of(tok, [c for c, _ in rows])[:, :N]; ys = [labels(*r) for r in rows]
    h = text(ids).last_hidden_state
    with torch.no_grad(): h0 = old(ids).last_hidden_state
    eos = (ids == tok.eos_token_id).int().argmax(1); other = torch.randint(0, N, (B,)).maximum(eos); at = torch.arange(B); loss = 0; tell = torch.stack([h[at, eos], h[at, other]])
    directed = torch.tensor([r in ("left of", "right of", "above", "below") for r, _ in ys]); inside = torch.tensor([r == "inside" for r, _ in ys])
    for k in heads:
        y = torch.tensor([v[k] for _, v in ys]); o = lin[k](tell); loss = loss + F.cross_entropy(o.flatten(0, 1), y.repeat(2))
        if k[1:] in ("color", "shape"):
            hit = o[0].argmax(1) == y
            if k[0] in "WENS": m = directed & (y > 0); acc.setdefault("directed " + k[1:], []).append((hit[m].sum().item(), m.sum().item()))
            elif k[0] == "I": m = inside & (y > 0); acc.setdefault("inside " + k[1:], []).append((hit[m].sum().item(), m.sum().item()))
    far = F.mse_loss(h, h0); (loss + KEEP * far).backward(); torch.nn.utils.clip_grad_norm_(slow, 5.0); opt.step(); opt.zero_grad(); step += 1; drift.append(far.item())
    if step % 50 == 0: print(f"{step} {time.time() - start:.0f}s cpu {time.process_time() - t0:.0f} loss {loss.item():.3f} drift {sum(drift) / 50:.4f}", {k: round(sum(a for a, _ in v) / max(1, sum(b for _, b in v)), 3) for k, v in acc.items()}, flush=True); acc, drift = {}, []
    if step % 200 == 0: text.save_pretrained(dst / "text_encoder")
text.save_pretrained(dst / "text_encoder"); print("end", step)
