"""train_unet.py MINUTES OUT: trains U-Net and text encoder on from PARTS (environment; else SHAPES_OUT), into OUT/unet,
OUT/text_encoder (EMA; every 10 minutes too). With TEXT=keep the text encoder stays as it is.

Scenes are made as it goes. Captions with two objects, and high noise, where it is settled which object goes where,
come more often."""
import math, os, random, sys, time
from pathlib import Path
import torch, torch.nn.functional as F
torch.set_num_threads(1)
from common import BETAS, EMA, OUT, SIZE, ids_of, parts, polar, statistics
import scenes as SC
from fields import fields
from diffusers import DDPMScheduler
minutes, out = float(sys.argv[1]), Path(sys.argv[2]); B, LR, OPT = int(os.environ.get("BATCH", 32)), float(os.environ.get("LR", 3e-4)), os.environ.get("OPT", "muon")
HIGH, LEAN, WD = float(os.environ.get("HIGH", 0.42)), float(os.environ.get("LEAN", 0.2)), float(os.environ.get("WD", 0.01))
seed = int(os.environ.get("SEED", time.time())); rng = random.Random(seed); torch.manual_seed(seed)
unet, text, tok = parts(Path(os.environ.get("PARTS", OUT))); unet.train(); text.train()
mean, std = statistics(); WEIGHTS = dict(zip(("one", "apart", "inside", "many"), map(float, os.environ.get("MODES", "0.15 0.42 0.25 0.18").split())))


def mode_of(caption):
    if " inside " in caption: return "inside"
    if any(f" {w} " in caption for w in ("and", "above", "below", "left of", "right of")): return "apart"
    return "many" if any(f"{w} " in caption for w in ("two", "three", "four")) else "one"


def scene(rng, mode, aspect):
    while True:
        c, s = SC.sample(rng, aspect)
        if mode_of(c) == mode: return c, s


FREEZE = os.environ.get("TEXT", "train") == "keep"
pool = {f: [] for f in SIZE}; LIMIT = 24000


def grow(f, n):
    h, w = SIZE[f]; rows = [scene(rng, m, w / h) for m in rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=n)]
    z = ((fields([s for _, s in rows], h, w) - mean) / std).half(); ids = ids_of(tok, [c for c, _ in rows])
    with torch.no_grad(): ids = text(ids).last_hidden_state.half() if FREEZE else ids.to(torch.int16)
    for k in range(n):
        if len(pool[f]) < LIMIT: pool[f].append((z[k], ids[k]))
        else: pool[f][rng.randrange(LIMIT)] = (z[k], ids[k])


sched = DDPMScheduler(**BETAS, prediction_type="v_prediction"); empty = ids_of(tok, [""])
empty = text(empty).last_hidden_state[0].detach() if FREEZE else empty[0]
r2 = random.Random(4242); test = {m: [scene(r2, m, 1.0) for _ in range(24)] for m in WEIGHTS}
test = {m: (((fields([s for _, s in v]) - mean) / std), ids_of(tok, [c for c, _ in v])) for m, v in test.items()}


@torch.inference_mode()
def evaluate():
    line = []
    for m, (x, ids) in test.items():
        e = text(ids).last_hidden_state; g = torch.Generator().manual_seed(1)
        for t in (999, 850, 400):
            tt = torch.full((len(x),), t); n = torch.randn(x.shape, generator=g)
            if t == 999: n = n - sched.alphas_cumprod[t].sqrt() / (1 - sched.alphas_cumprod[t]).sqrt() * x      # as a sampler starts
            v = unet(sched.add_noise(x, n, tt), tt, e).sample; line.append(f"{m}@{t} {F.mse_loss(v, sched.get_velocity(x, n, tt)):.4f}")
    return " ".join(line)


def orthogonal(G):                                     # (n, a, b), a <= b: the nearest orthogonal matrices, roughly
    return polar(G / (G.norm(dim=(1, 2), keepdim=True) * 1.01 + 1e-7), 4)


class Muon:
    def __init__(self, params, momentum=0.95):
        self.groups = {}
        for p in params: self.groups.setdefault(tuple(sorted(p.flatten(1).shape)), []).append([p, torch.zeros_like(p.flatten(1))])
        self.momentum = momentum

    @torch.no_grad()
    def step(self, lr):
        for (a, b), rows in self.groups.items():
            G = []
            for p, m in rows:
                g = p.grad.flatten(1); m.lerp_(g, 1 - self.momentum); u = g.lerp(m, self.momentum); G.append(u.mT if u.shape[0] > u.shape[1] else u)
            O = orthogonal(torch.stack(G)) * (0.2 * b ** 0.5)
            for (p, m), o in zip(rows, O):
                p.mul_(1 - lr * WD); o = o.mT if m.shape[0] > m.shape[1] else o
                p.add_(o.reshape(p.shape), alpha=-lr)


if FREEZE: text.requires_grad_(False)
named = [(f"unet.{k}", p) for k, p in unet.named_parameters()] + [(f"text.{k}", p) for k, p in text.named_parameters() if not FREEZE]; params = [p for _, p in named]
matrix = lambda k, p: OPT == "muon" and p.ndim >= 2 and "embedding" not in k and "conv_out" not in k and "time_emb" not in k
muon = Muon([p for k, p in named if matrix(k, p)]); rest = [p for k, p in named if not matrix(k, p)]
adam = torch.optim.AdamW(rest, lr=LR, betas=(0.9, 0.99), weight_decay=WD, fused=True); ema = EMA(params, float(os.environ.get("EMA", 0.998)))


def save():
    now = [p.detach().clone() for p in params]; ema.copy_to(); line = evaluate(); unet.save_pretrained(out / "unet"); text.save_pretrained(out / "text_encoder")
    with torch.no_grad():
        for p, c in zip(params, now): p.copy_(c)
    print("saved; ema", line, flush=True)


print("start", evaluate(), flush=True)
for f, n in (("square", 1200), ("portrait", 400), ("landscape", 400)):
    for _ in range(n // 100): grow(f, 100)
pure = []; t0, step, acc, last = time.time(), 0, [], time.time(); print("pool ready", time.process_time(), flush=True)
while time.time() - t0 < minutes * 60:
    frac = (time.time() - t0) / (minutes * 60); lr = LR * min(1, (step + 1) / float(os.environ.get("WARM", 100))) * (0.03 + 0.97 * min(1, (1 - frac) / float(os.environ.get("DECAY", 0.6))))
    f = rng.choices(list(SIZE), [0.64, 0.18, 0.18])[0]
    grow(f, 6)
    rows = rng.sample(pool[f], B); x, ids = torch.stack([z for z, _ in rows]).float(), torch.stack([i for _, i in rows])
    ids = ids.float() if FREEZE else ids.long()
    # A sampler starts from noise that says nothing of the scene, though even at t = 999 seven hundredths of it are left in training: without
    # rows like the sampler's, and some that lean towards another scene, the model trusts the noise more than the caption.
    ids[torch.rand(B) < 0.07] = empty; early = torch.rand(B) < HIGH; t = torch.where(early, torch.randint(945, 1000, (B,)), torch.randint(0, 1000, (B,)))
    one = lambda p: torch.rand(B, 1, 1, 1) < p
    n = torch.randn_like(x); a = sched.alphas_cumprod[t]; a = (a / (1 - a)).sqrt().view(-1, 1, 1, 1)
    lean = one(LEAN) * 1.5 * torch.rand(B, 1, 1, 1) * torch.where(one(0.5), F.interpolate(F.avg_pool2d(x, 4), scale_factor=4), x)
    n = torch.where(early.view(-1, 1, 1, 1), n - a * x + one(0.2) * 0.15 * torch.rand(B, 1, 1, 1) * x.roll(1, 0), n + lean)
    v = unet(sched.add_noise(x, n, t).contiguous(memory_format=torch.channels_last), t, ids if FREEZE else text(ids).last_hidden_state).sample
    each = ((v - sched.get_velocity(x, n, t)) ** 2).mean((1, 2, 3)); loss = each.mean(); loss.backward(); pure += each.detach()[early].tolist(); torch.nn.utils.clip_grad_norm_(params, 1.0)
    for g in adam.param_groups: g["lr"] = lr
    adam.step(); muon.step(lr)
    for p in params: p.grad = None
    ema.update(); step += 1; acc.append(loss.item())
    if step % 25 == 0: print(f"{step} {time.time() - t0:.0f}s cpu {time.process_time():.0f} lr {lr:.1e} mse {sum(acc) / len(acc):.4f} of pure noise {sum(pure) / max(1, len(pure)):.4f}", flush=True); acc, pure = [], []
    if time.time() - last > float(os.environ.get("SAVE", 360)): save(); last = time.time()
save()
