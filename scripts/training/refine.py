"""refine.py MINUTES IN OUT FOLDER...: trains the decoder's unused blocks at 16 x 16 to set right what the U-Net gets
wrong; IN, OUT: folders of the decoder. OUT is a mean of the weights before and after, of which SHARE (0.75) are those after.

FOLDERs hold samples of gen.py with what fit.py found in them. What the renderer relies on stays: constants, the
ground's means, everything behind the first up-sampling."""
import math, os, random, sys, time
from pathlib import Path
import torch, torch.nn.functional as F
torch.set_num_threads(1)
from diffusers import AutoencoderKL
from common import AT, EMA, HI, LO, SIZE, polar, statistics
import robot
from fields import REACH, fields
from scenes import sample
minutes, src, dst, folders = float(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), [Path(f) for f in sys.argv[4:]]
B, LR, EXACT = int(os.environ.get("BATCH", 32)), float(os.environ.get("LR", 2e-3)), float(os.environ.get("EXACT", 0.3))
torch.manual_seed(int(os.environ.get("SEED", 1))); rng = random.Random(int(os.environ.get("SEED", 1)))
vae = AutoencoderKL.from_pretrained(src); d = vae.decoder; mean, std = statistics()
mid1, up0, up1 = d.mid_block.resnets[1], d.up_blocks[0].resnets[0], d.up_blocks[0].resnets[1]
blocks = (mid1, up0, up1)
for p in vae.parameters(): p.requires_grad_(False)


masks = {}


def masked(p, mask):
    p.requires_grad_(True); masks[id(p)] = mask


def only(shape, rows=None, columns=None):
    m = torch.zeros(shape); m[rows] = 1
    if columns is not None: m[:, columns] = 0
    return m


writable = torch.tensor([c for c in range(128) if c not in (13, HI, LO)])
for m in blocks:
    for k, p in m.named_parameters(): masked(p, only(p.shape, writable) if k.startswith("conv2") else torch.ones_like(p))
params = [p for p in vae.parameters() if p.requires_grad]
rows9 = [9, 10]; needed = [9, 10, *range(16, 22)]; W = d.up_blocks[0].upsamplers[0].conv.weight[rows9][:, needed].detach().clone()
smooth = torch.tensor([0.25, 0.5, 0.25]); smooth = (smooth[:, None] * smooth).expand(2, 1, 3, 3).contiguous()
up = lambda v: F.interpolate(v, scale_factor=2, mode="nearest")


def coarse(z):
    with torch.no_grad(): h = d.mid_block.resnets[0](d.conv_in(vae.post_quant_conv(z)), None); h = d.mid_block.attentions[0](h)
    h = h.contiguous()                                # torch 2.13 crashes in the backward pass of a group norm whose input is laid out otherwise and needs no gradient
    return up1(up0(mid1(h, None), None), None)


def distances(h):                                        # 64 x 64: as the decoder goes on with them
    v = F.conv2d(up(h[:, needed].contiguous()), W, padding=1); n, _, a, b = v.shape
    return F.conv2d(up(v).reshape(n * 2, 1, 2 * a, 2 * b), smooth[:1], padding=1).reshape(n, 2, 2 * a, 2 * b)


def targets(specs, h, w): return fields(specs, h, w).half(), fields(specs, h, w, cell_px=8, sub=1)[:, 9:11].half()


def held(folders):
    data, test = {f: [] for f in SIZE}, []
    for folder in folders:
        paths = sorted(folder.glob("*.fit"), key=lambda p: [int(v) for v in p.stem.split("-")]); bad = 0
        for n, p in enumerate(paths):
            cache = p.with_suffix(".train")
            if not cache.exists():
                s, f = torch.load(p.with_suffix(".pt")), torch.load(p); g = f["figures"]; h, w = SIZE[s["format"]]
                good = (g["outer"] < 0.1) & (g["inner"] < 0.06) & (g["paint"] < 0.4) & (g["paint2"] < 0.4) & (g["ground"] < 0.3) & (g["mark"] < 0.2) & (g["line"] < 0.5); at = good.nonzero()[:, 0].tolist()
                x, far = targets([f["specs"][i] for i in at], h, w); torch.save((s["format"], s["z"][[f["index"][i] for i in at]], x, far, s["cfg"][[f["index"][i] for i in at]], len(good)), cache)
            fmt, z, x, far, cfg, total = torch.load(cache); bad += total - len(z)
            if n < 3 and folder == folders[0]: test.append((z, x, far, cfg))
            else: data[fmt] += list(zip(z, x, far))
        print(folder, "left out", bad, flush=True)
    return data, test


def loss_of(z, x, far, figures=False):
    h = coarse(z); got = h[:, [0, 1, 2, *AT[3:]]]; near = torch.ones_like(x); near[:, 9:11] += 3 * (x[:, 9:11].abs() < 0.9); near[:, 12] += 1; near[:, 13:16] = 0.05
    near[:, 16:] = 0.5; near[:, 3:9] = (0.02 + (x[:, 9:11] > -0.15).float()).repeat_interleave(3, 1); near[:, 11] = 0.05 + 1.0 * (x[:, 9] > -0.3)
    D = distances(h); edge = 0.1 + 4 * (far.abs() < 0.25) + 2 * (far.abs() < 0.6)
    e, E = (got - x).abs(), (D - far).abs()
    if figures: return torch.stack([e[:, 0:3].mean(), (e[:, 3:6] * (x[:, 9:10] > 0)).sum() / (x[:, 9:10] > 0).sum() / 3, e[:, 9].mean(), e[:, 11].mean(), e[:, 12].mean(), E[far.abs() < 0.25].mean()])
    return (e * near).mean() + (e * e * near).mean() + (E * edge).mean() + 2 * (E * E * edge).mean()


data, test = held(folders); print({k: len(v) for k, v in data.items()}, "test", sum(len(z) for z, *_ in test), flush=True)


@torch.inference_mode()
def report(name):
    a = torch.stack([loss_of(z.float(), x.float(), far.float(), True) for z, x, far, _ in test]).mean(0)
    r = random.Random(77); rows = [sample(r)[1] for _ in range(24)]; x, far = targets(rows, 512, 512); b = loss_of((x.float() - mean) / std, x.float(), far.float(), True)
    print(name, "samples: ground, paint, outer, line, mark, edge", [round(v, 4) for v in a.tolist()], "exact", [round(v, 4) for v in b.tolist()], flush=True)


@torch.no_grad()
def muon(p, state, lr):
    g = p.grad.flatten(1); state.lerp_(g, 0.06); u = g.lerp(state, 0.94); X = polar(u / (u.norm() * 1.01 + 1e-9), 5)
    p.mul_(1 - lr * 0.02 * masks[id(p)]); p.add_((X * (0.2 * max(X.shape) ** 0.5)).reshape(p.shape) * masks[id(p)], alpha=-lr)


matrices = [p for p in params if p.ndim == 4]; states = [torch.zeros_like(p.flatten(1)) for p in matrices]; rest = [p for p in params if p.ndim < 4]
adam = torch.optim.Adam(rest, lr=LR, betas=(0.9, 0.98)); ema, before = EMA(params, 0.99), [p.detach().clone() for p in params]
report("start"); fresh_pool = []; t0, step, acc, shown = time.time(), 0, [], time.time()
while time.time() - t0 < minutes * 60:
    frac = (time.time() - t0) / (minutes * 60); lr = LR * min(1, (step + 1) / 30) * (0.02 + 0.98 * min(1, (1 - frac) / 0.7))
    fmt = rng.choices(list(data), [len(v) for v in data.values()])[0]; h, w = SIZE[fmt]; n = int(B * EXACT)
    rows = [data[fmt][rng.randrange(len(data[fmt]))] for _ in range(B - n)]; z, x, far = (torch.stack([r[k] for r in rows]).float() for k in range(3))
    z = z + 0.04 * torch.rand(len(z), 1, 1, 1) ** 2 * torch.randn_like(z)
    if n:
        xs, fs = [], []
        if len(fresh_pool) < 400 or step % 4 == 0: fresh_pool.append((fmt, *targets([sample(rng, w / h)[1] for _ in range(max(1, n - 1))], h, w)))
        mine = [p for p in fresh_pool if p[0] == fmt]; _, ex, ef = mine[rng.randrange(len(mine))]; ex, ef = ex.float(), ef.float()
        rx = robot.fields([robot.sample(rng)[1]], h, w); raw = torch.zeros(1, 128, h // 32, w // 32); raw[:, AT] = rx       # the robot of the LoRA, no shape of the captions, passes as it is
        ex, ef = torch.cat([ex, rx]), torch.cat([ef, distances(raw)])
        q = (ex - mean) / std; noise = torch.randn_like(q) + 1.5 * F.interpolate(torch.randn(len(q), 22, h // 64, w // 64), scale_factor=2, mode="bilinear"); q = q + (torch.rand(len(q), 1, 1, 1) < 0.5) * 0.25 * torch.rand(len(q), 1, 1, 1) * noise
        z, x, far = torch.cat([z, q]), torch.cat([x, ex]), torch.cat([far, ef])
    loss = loss_of(z, x, far)
    loss.backward()
    for p in params: p.grad.mul_(masks[id(p)])
    torch.nn.utils.clip_grad_norm_(params, 1.0)
    for g in adam.param_groups: g["lr"] = lr
    adam.step()
    for p, s in zip(matrices, states): muon(p, s, lr)
    for p in params: p.grad = None
    step += 1; acc.append(loss.item()); ema.update()
    if step % 25 == 0: print(f"{step} {time.time() - t0:.0f}s cpu {time.process_time():.0f} loss {sum(acc) / len(acc):.4f}", flush=True); acc = []
    if time.time() - shown > 180: report("now"); shown = time.time()
with torch.no_grad():
    for p, b, s in zip(params, before, ema.shadow): p.copy_(b.lerp(s, float(os.environ.get("SHARE", 0.75))))
report("end"); vae.to(memory_format=torch.contiguous_format).save_pretrained(dst)
