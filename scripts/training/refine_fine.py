"""refine_fine.py MINUTES IN OUT: trains the decoder's second blocks at 32 x 32 and 64 x 64, which the renderer leaves unused, to
draw distances and the ground's marks finer than interpolation does; IN, OUT: folders of the decoder.

Only exact scenes are shown, half of them as the blocks before pass them on and half as they are. Two constant units fix
the scale of each second norm, so a large picture of small objects is treated like any other."""
import math, os, random, sys, time
import torch, torch.nn.functional as F
torch.set_num_threads(1)
from diffusers import AutoencoderKL
import robot
from common import AT, EMA, statistics
from fields import fields
from scenes import sample
minutes, src, dst = float(sys.argv[1]), sys.argv[2], sys.argv[3]; LR, B = float(os.environ.get("LR", 1.5e-3)), int(os.environ.get("BATCH", 12))
seed = int(os.environ.get("SEED", 1)); rng = random.Random(seed); torch.manual_seed(seed); SIZE = {1.0: (512, 512), 2 / 3: (768, 512), 1.5: (512, 768)}
vae = AutoencoderKL.from_pretrained(src); d = vae.decoder; mean, std = statistics()
READ = {0: [9, 10, 11, 12, *range(16, 22)], 1: [9, 10, 11, 12]}       # what a block sees
blocks = [d.up_blocks[1].resnets[1], d.up_blocks[2].resnets[1]]; WRITE = [9, 10, 12]
for p in vae.parameters(): p.requires_grad_(False)
masks, params = {}, []
with torch.no_grad():
    for i, b in enumerate(blocks):
        n = b.conv1.weight.shape[0]; read = READ[i]
        for k, p in b.named_parameters():
            m = torch.zeros_like(p)
            if k == "norm1.weight": continue
            if k == "norm1.bias": m[read] = 1
            elif k == "conv1.weight": m[:n - 2, read] = 1
            elif k == "conv1.bias": m[:n - 2] = 1
            elif k.startswith("norm2"): m[:n - 2] = 1
            elif k == "conv2.weight": m[WRITE] = 1; m[:, n - 2:] = 0
            elif k == "conv2.bias": m[WRITE] = 1
            else: continue
            p.requires_grad_(True); masks[id(p)] = m; params.append(p)
up = lambda v: F.interpolate(v, scale_factor=2, mode="nearest")


@torch.no_grad()
def before(specs, aspect, raw=None):
    """-> (n, 96, h, w) at 32 x 32 in a square picture of 16 x 16 cells: what the first of the blocks gets."""
    x = fields(specs, *SIZE[aspect]) if raw is None else raw; h = d.mid_block(d.conv_in(vae.post_quant_conv((x - mean) / std)), None)
    g = d.up_blocks[0].resnets[1](d.up_blocks[0].resnets[0](h.contiguous(), None), None)
    if raw is not None or rng.random() < 0.5:
        g = h.clone()
        for f, c in enumerate(AT): g[:, c] = x[:, f]
        g[:, 0:3] = x[:, 0:3]
    return d.up_blocks[1].resnets[0](d.up_blocks[0].upsamplers[0](g), None)


def after(h):
    """-> distances and marks at 128 x 128"""
    h = d.up_blocks[2].resnets[0](d.up_blocks[1].upsamplers[0](blocks[0](h, None)), None)
    return d.up_blocks[2].upsamplers[0](blocks[1](h, None))[:, WRITE]


def rows(n):
    aspect = rng.choices(list(SIZE), [0.64, 0.18, 0.18])[0]; specs = [sample(rng, aspect)[1] for _ in range(n)]
    return aspect, before(specs, aspect).half(), fields(specs, *SIZE[aspect], cell_px=4, sub=1)[:, [9, 10, 12, 11]].half()


def loss_of(h, far, figures=False):
    D = after(h); line = far[:, 3:4] > 0.5; far = far[:, :3]; E = (D - far).abs()
    edge = 0.05 + 4 * (far.abs() < 0.12) + 0.5 * (far.abs() < 0.4); edge[:, :1] += 4 * (line & ((far[:, :1] - 0.267).abs() < 0.12)); edge[:, 2] *= 0.3
    if figures: return torch.stack([E[:, :2][far[:, :2].abs() < 0.12].mean(), E[:, 2][far[:, 2].abs() < 0.3].mean()])
    return ((E + 6 * E * E) * edge).mean()


@torch.inference_mode()
def report(name):
    r = rng.getstate(); rng.seed(77); figures = []
    for _ in range(4): a, h, far = rows(8); figures.append(loss_of(h.float(), far.float(), True))
    rng.setstate(r); print(name, "edge, marks", [round(v, 4) for v in torch.stack(figures).nanmean(0).tolist()], flush=True)


adam = torch.optim.Adam(params, lr=LR, betas=(0.9, 0.99)); ema = EMA(params, 0.99); pool = {a: [] for a in SIZE}
report("start"); t0, step, acc, shown = time.time(), 0, [], time.time()
while time.time() - t0 < minutes * 60:
    frac = (time.time() - t0) / (minutes * 60); lr = LR * min(1, (step + 1) / 50) * (0.02 + 0.98 * min(1, (1 - frac) / 0.7))
    while sum(map(len, pool.values())) < 48 * min(1 + step, 10) or not all(len(v) >= B for v in pool.values()) or (step % 3 == 0 and rng.random() < 0.999):
        aspect, h, far = rows(6); mine = pool[aspect]; mine += list(zip(h, far))
        if len(mine) > 900: del mine[:6]
        if step % 3 == 0 and all(len(v) >= B for v in pool.values()): break
    aspect = rng.choices(list(SIZE), [0.64, 0.18, 0.18])[0]; part = rng.sample(pool[aspect], B); h, far = (torch.stack([p[k] for p in part]).float() for k in range(2))
    loss = loss_of(h, far); loss.backward()
    for p in params: p.grad.mul_(masks[id(p)])
    torch.nn.utils.clip_grad_norm_(params, 1.0)
    for g in adam.param_groups: g["lr"] = lr
    adam.step(); adam.zero_grad(); step += 1; acc.append(loss.item()); ema.update()
    if step % 25 == 0: print(f"{step} {time.time() - t0:.0f}s cpu {time.process_time():.0f} loss {sum(acc) / len(acc):.4f}", flush=True); acc = []
    if time.time() - shown > 150: report("now"); shown = time.time()
ema.copy_to()
with torch.no_grad():
    for m in d.modules():                             # what is not used takes no room: equal tensors are stored once
        if type(m).__name__ == "ResnetBlock2D" and m.conv2.weight.abs().sum() == 0: m.conv1.weight.zero_()
report("end"); vae.save_pretrained(dst)
