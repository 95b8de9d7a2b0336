"""fit.py FOLDER [FOLDER...]: for each sample of gen.py the spec that it shows (positions and sizes of the caption's
objects), as FOLDER/<name>.fit; those that show something else are marked."""
import sys, time, torch
import torch.nn.functional as F
torch.set_num_threads(1)
from pathlib import Path
from scipy import ndimage
from common import CELL, SIZE, statistics
from fields import REACH, WIDE, SUB, fields, layers
from scenes import _sdf
mean, std = statistics()


def grid(h, w):
    short, px = min(h, w), CELL / SUB
    ys = (torch.arange(int(h / px)) + 0.5) * px / short - 0.5 * h / short; xs = (torch.arange(int(w / px)) + 0.5) * px / short - 0.5 * w / short
    return torch.meshgrid(ys, xs, indexing="ij")


centre = lambda v: F.avg_pool2d(v[..., 1:-1, 1:-1], 2, stride=SUB)


def spots(f9, q, n, h, w):
    """Centres of n regions of the outer layer, or None."""
    short = min(h, w); big = F.interpolate(f9[None, None], scale_factor=4, mode="bilinear", align_corners=False)[0, 0].numpy()
    for level in (0.0, 0.1, 0.2, 0.3, 0.4):
        lab, k = ndimage.label(big > level)
        if k == n: return [((x + 0.5) * 8 / short - 0.5 * w / short, (y + 0.5) * 8 / short - 0.5 * h / short) for y, x in ndimage.center_of_mass(big > level, lab, range(1, n + 1))]
    return None


def depth(items, p, X, Y):
    """items: of one scene; p: (n, 3)"""
    d = torch.stack([_sdf(it["shape"], (X - p[k, 0]) / p[k, 2], (Y - p[k, 1]) / p[k, 2], 1.0) * p[k, 2] for k, it in enumerate(items)])
    return d.amin(0)


def place(items, inits, f, chan, X, Y, steps=30):
    best = None
    for init in inits:
        p = torch.tensor(init, dtype=torch.float32, requires_grad=True); opt = torch.optim.Adam([p], lr=0.012, betas=(0.8, 0.95))
        for i in range(steps):
            for g in opt.param_groups: g["lr"] = 0.012 * (1 - i / steps) + 0.0005
            d = depth(items, p, X, Y); a = centre((-d / REACH).clamp(-1, 1)[None])[0]; loss = F.smooth_l1_loss(a, f[chan], beta=0.1)
            if chan == 9: loss = loss + F.smooth_l1_loss(centre((-d / WIDE).clamp(-1, 1)[None])[0], f[15], beta=0.1)
            opt.zero_grad(); loss.backward(); opt.step()
        if best is None or loss.item() < best[0]: best = (loss.item(), p.detach())
    return best


def fit(row, z, h, w):
    """-> (spec as drawn or None, figures)"""
    caption, spec = row; f = z.float() * std[0] + mean[0]; Y, X = grid(h, w); outer, inner = layers(spec); new = []
    init = lambda items: [[i["x"], i["y"], i["r"]] for i in items]
    if spec["inside"] or len(outer) == 1: starts = [init(outer)]
    else:
        at = spots(f[9], None, len(outer), h, w)
        if at is None: return None, None
        same = all(i["shape"] == outer[0]["shape"] for i in outer) and len({i["color"] for i in outer}) == 1
        if same: starts = [[[x, y, outer[0]["r"]] for x, y in at]]
        else: starts = [[[x, y, i["r"]] for (x, y), i in zip(order, outer)] for order in (at, at[::-1])]
    if len(outer) == 1:                                       # a single one may be a little elsewhere: begin at its region's centre too
        at = spots(f[9], None, 1, h, w)
        if at: starts.append([[*at[0], outer[0]["r"]]])
    e0, p = place(outer, starts, f, 9, X, Y); new += [dict(i, x=v[0], y=v[1], r=v[2]) for i, v in zip(outer, p.tolist())]; e1 = 0.0
    if inner:
        e1, p = place(inner, [init(inner)], f, 10, X, Y); new += [dict(i, x=v[0], y=v[1], r=v[2]) for i, v in zip(inner, p.tolist())]
    return dict(spec, items=new), (e0, e1)


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:]):
        for path in sorted(folder.glob("*.pt")):
            goal = path.with_suffix(".fit")
            if goal.exists(): continue
            d = torch.load(path); h, w = SIZE[d["format"]]; t0 = time.process_time()
            fits = [fit(r, z, h, w) for r, z in zip(d["rows"], d["z"])]; have = [i for i, (s, _) in enumerate(fits) if s]
            x = fields([fits[i][0] for i in have], h, w); f = d["z"][have].float() * std + mean
            share = (x[:, 13:14] > 0).float(); inn = (x[:, 14:15] > 0).float(); mean_of = lambda e, m: (e * m).sum((1, 2, 3)) / m.sum((1, 2, 3)).clamp(min=1)
            figures = {"outer": (x[:, 9] - f[:, 9]).abs().mean((1, 2)), "inner": (x[:, 10] - f[:, 10]).abs().mean((1, 2)), "paint": mean_of((x[:, 3:6] - f[:, 3:6]).abs().amax(1, True), share),
                "paint2": mean_of((x[:, 6:9] - f[:, 6:9]).abs().amax(1, True), inn), "ground": (x[:, 0:3] - f[:, 0:3]).abs().amax(1).mean((1, 2)), "mark": (x[:, 12] - f[:, 12]).abs().mean((1, 2)), "line": mean_of((x[:, 11:12] - f[:, 11:12]).abs(), share)}
            torch.save({"index": have, "specs": [fits[i][0] for i in have], "x": x.half(), "figures": figures}, goal)
            print(goal, f"{time.process_time() - t0:.1f}s", len(have), {k: [round(q, 3) for q in v.quantile(torch.tensor([0.5, 0.8, 0.9, 0.95])).tolist()] for k, v in figures.items()}, flush=True)
