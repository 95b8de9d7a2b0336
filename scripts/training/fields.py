"""fields(specs, height, width): the latents of scenes, 22 numbers for each cell of 32 x 32 pixels.

What an encoder would have to learn is known here: ground colour (0-2), colour of the outer layer (3-5) and of what lies
inside it (6-8), how deep inside the outer (9) and inner (10) outline a cell is, whether the outer one is only an
outline (11), how deep inside the ground's pattern (12), and the covered shares of the cell (13 outer, 14 inner); 15 is
the outer depth on a coarser scale; 16-18 say how the outer depth differs between the quarters of a cell, from left to
right, from above to below, and crosswise, 19-21 the inner one. Depths are signed distances in short sides, divided by
REACH and cut at -1 and 1. A decoder draws crisp edges from them at any resolution, and all of them are smooth, which
makes them easy to predict.
"""
import torch
from common import CELL, LATENT_CHANNELS
from scenes import COLORS, _sdf, gloss, pattern

REACH, WIDE, SUB = 0.12, 0.4, 4
COLOR = list(COLORS)
PALETTE = torch.tensor([COLORS[c] for c in COLOR]) / 127.5 - 1


def layers(spec):
    """-> (outer items, inner items)"""
    return (spec["items"][:1], spec["items"][1:]) if spec.get("inside") else (spec["items"], [])


@torch.no_grad()
def fields(specs, height=512, width=512, cell_px=CELL, sub=SUB):
    """cell_px and sub: the size of a cell and the samples along its side; smaller cells give what a decoder has to make of the latents."""
    n, short, px, SUB = len(specs), min(height, width), cell_px / sub, sub
    ys = (torch.arange(int(height / px)) + 0.5) * px / short - 0.5 * height / short
    xs = (torch.arange(int(width / px)) + 0.5) * px / short - 0.5 * width / short
    Y, X = torch.meshgrid(ys, xs, indexing="ij")
    H, W = Y.shape
    cell = lambda v: torch.nn.functional.avg_pool2d(v, SUB)                                     # mean over a cell
    centre = cell if sub < 4 else lambda v: torch.nn.functional.avg_pool2d(v[..., 1:-1, 1:-1], 2, stride=SUB)        # mean of the four samples around its centre
    col = lambda values: torch.tensor(values, dtype=torch.float32).view(-1, 1, 1)
    g = PALETTE[torch.tensor([COLOR.index(s["ground"]) for s in specs])].view(n, 3, 1, 1)
    t = ((Y - ys[0]) / (ys[-1] - ys[0])).view(1, 1, H, W)
    gradient = col([s["kind"] == "gradient" for s in specs]).unsqueeze(1); black = col([s["ground"] == "black" for s in specs]).unsqueeze(1)
    low = (g + 1) * 0.55 - 1 + 0.44 * black
    ground = g + gradient * (low - g) * t
    pat = torch.stack([pattern(s["kind"], X, Y) for s in specs])
    out = torch.empty(n, LATENT_CHANNELS, H // SUB, W // SUB)
    out[:, 0:3] = cell(ground.expand(n, 3, H, W)); out[:, 12] = centre((-pat / 0.0625).clamp(-1, 1))
    for layer, (c0, at, share) in enumerate(((3, 9, 13), (6, 10, 14))):
        rows = [layers(s)[layer] for s in specs]
        d = torch.full((n, H, W), 9.0); weight = torch.zeros(n, 1, H, W); paint = torch.zeros(n, 3, H, W); hollow = torch.zeros(n, 1, H, W)
        for k in range(max(1, max(map(len, rows)))):
            have = [i for i in range(n) if len(rows[i]) > k]
            for shape in {rows[i][k]["shape"] for i in have}:
                idx = [i for i in have if rows[i][k]["shape"] == shape]; items = [rows[i][k] for i in idx]; where = torch.tensor(idx)
                x, y, r = X - col([i["x"] for i in items]), Y - col([i["y"] for i in items]), col([i["r"] for i in items])
                di = r * _sdf(shape, x / r, y / r, 1.0)
                c = PALETTE[torch.tensor([COLOR.index(i["color"]) for i in items])].view(-1, 3, 1, 1)
                glossy = col([i["finish"] == "glossy" for i in items]).unsqueeze(1)
                c = c + glossy * (gloss((c + 1) / 2, x, y, r) * 2 - 1 - c)
                w = torch.exp(-di.clamp(min=0) / 0.02).unsqueeze(1) + 1e-6
                weight[where] += w; paint[where] += w * c; hollow[where] += w * col([float(i["finish"] == "outlined") for i in items]).unsqueeze(1)
                d[where] = torch.minimum(d[where], di)
        none = weight == 0
        paint = torch.where(none, out_color(paint, out, layer), paint / weight.clamp(min=1e-9))
        out[:, c0:c0 + 3] = cell(paint); out[:, at] = centre((-d / REACH).clamp(-1, 1)); out[:, share] = cell((0.5 - d * short / px).clamp(0, 1)) * 2 - 1
        q = torch.nn.functional.avg_pool2d((-d / REACH).clamp(-1, 1), SUB // 2) if SUB > 1 else None
        if q is not None:
            a, b, c, e = q[..., ::2, ::2], q[..., ::2, 1::2], q[..., 1::2, ::2], q[..., 1::2, 1::2]
            out[:, 16 + 3 * layer], out[:, 17 + 3 * layer], out[:, 18 + 3 * layer] = (b + e - a - c) / 4, (c + e - a - b) / 4, (a - b - c + e) / 4
        else: out[:, 16 + 3 * layer:19 + 3 * layer] = 0
        if layer == 0: out[:, 11] = cell(torch.where(none, 0.0, hollow / weight.clamp(min=1e-9)))[:, 0]; out[:, 15] = centre((-d / WIDE).clamp(-1, 1))
    return out


def out_color(paint, out, layer):
    """A layer that is empty takes the colour of the one below it."""
    below = out[:, 0:3] if layer == 0 else out[:, 3:6]
    return torch.nn.functional.interpolate(below, size=paint.shape[-2:])
