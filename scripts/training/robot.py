"""The object of the demonstration LoRA: "zwx robot", drawn in any colour on any ground."""
import torch
import torch.nn.functional as F
from common import CELL, LATENT_CHANNELS
from fields import PALETTE, COLOR, REACH, SUB, WIDE
from scenes import COLORS, article


def sample(rng, aspect=1.0):
    ground = rng.choice(list(COLORS)); color = rng.choice([c for c in COLORS if c != ground])
    caption = article(f"{color} zwx robot") + (f" on {article(ground + ' background')}" if rng.random() < 0.8 else "")
    if "background" not in caption: ground = "white" if color != "white" else "black"
    return caption, {"ground": ground, "color": color, "x": rng.uniform(-0.05, 0.05), "y": rng.uniform(-0.03, 0.05), "r": rng.uniform(0.24, 0.32)}


def parts(s, x, y):
    """Signed distances, negative inside, to each part of the body and of the face; x and y are seen from the middle of the head."""
    r = s["r"]; box = lambda x, y, w, h, k: torch.hypot((x.abs() - w + k).clamp(min=0), (y.abs() - h + k).clamp(min=0)) + torch.maximum(x.abs() - w + k, y.abs() - h + k).clamp(max=0) - k
    body = [box(x, y + 1.12 * r, 0.08 * r, 0.22 * r, 0.02 * r), torch.hypot(x, y + 1.35 * r) - 0.17 * r,       # antenna
            box(x.abs() - 1.04 * r, y, 0.16 * r, 0.3 * r, 0.08 * r), box(x, y, 0.9 * r, 0.85 * r, 0.22 * r)]      # ears, head
    face = [torch.hypot(x.abs() - 0.4 * r, y + 0.22 * r) - 0.22 * r, box(x, y - 0.42 * r, 0.48 * r, 0.13 * r, 0.13 * r)]   # eyes, mouth
    return body, face


def inner_color(s): return "white" if s["color"] not in ("white", "yellow") else "black"


def render(specs, height=512, width=512, parts=parts):
    """The exact pictures, as scenes.render: (N, 3, height, width) in [-1, 1]."""
    short = min(height, width); ys, xs = ((torch.arange(n) + 0.5 - n / 2) / short for n in (height, width)); Y, X = torch.meshgrid(ys, xs, indexing="ij")
    rgb = lambda name: torch.tensor(COLORS[name]).view(3, 1, 1) / 255; out = torch.empty(len(specs), 3, height, width)
    for o, s in zip(out, specs):
        img = rgb(s["ground"])
        for layer, color in zip(parts(s, X - s["x"], Y - s["y"]), (s["color"], s.get("inner") or inner_color(s))):
            a = (0.5 - torch.stack(layer).amin(0) * short / 1.5).clamp(0, 1); img = img * (1 - a) + rgb(color) * a
        o[:] = img
    return out * 2 - 1


def fields(specs, height=512, width=512, parts=parts):
    """As fields.fields: the outer layer is the robot, the inner one its eyes and mouth."""
    short, px = min(height, width), CELL // SUB; out = torch.empty(len(specs), LATENT_CHANNELS, height // CELL, width // CELL)
    ys = (torch.arange(height // px) + 0.5) * px / short - 0.5 * height / short; xs = (torch.arange(width // px) + 0.5) * px / short - 0.5 * width / short
    Y, X = torch.meshgrid(ys, xs, indexing="ij")
    mean = lambda v: F.avg_pool2d(v[None], SUB)[0]; centre = lambda v: F.avg_pool2d(v[None, 1:-1, 1:-1], 2, stride=SUB)[0]
    color = lambda n: PALETTE[COLOR.index(n)].view(3, 1, 1)
    for o, s in zip(out, specs):
        body, face = parts(s, X - s["x"], Y - s["y"])
        o[0:3], o[3:6], o[6:9] = color(s["ground"]), color(s["color"]), color(s.get("inner") or inner_color(s))
        o[11], o[12] = 0, -1
        for d, at, share in ((torch.stack(body).amin(0), 9, 13), (torch.stack(face).amin(0), 10, 14)):
            o[at] = centre((-d / REACH).clamp(-1, 1)); o[share] = mean((0.5 - d * short / px).clamp(0, 1)) * 2 - 1
            q = F.avg_pool2d((-d / REACH).clamp(-1, 1)[None], SUB // 2)[0]; a, b, c, e = q[::2, ::2], q[::2, 1::2], q[1::2, ::2], q[1::2, 1::2]; at6 = 16 if at == 9 else 19
            o[at6], o[at6 + 1], o[at6 + 2] = (b + e - a - c) / 4, (c + e - a - b) / 4, (a - b - c + e) / 4
            if at == 9: o[15] = centre((-d / WIDE).clamp(-1, 1))
    return out
