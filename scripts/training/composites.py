"""Objects of several parts: a body of joined boxes and circles, and up to five marks on it, for the encoder alone. No
caption names them; pictures that somebody trains with are such."""
import torch
import robot
from scenes import COLORS


def sample(rng, aspect=1.0):
    ground, color, inner = rng.sample(list(COLORS), 3); r = rng.uniform(0.2, 0.36); jitter = lambda by: rng.uniform(-by, by)
    def part(x, y, w, h): return {"x": x, "y": y, "w": w, "h": h, "round": rng.choice([0.02, 0.2, 0.6, 1.0])}
    body = [part(0, 0, rng.uniform(0.6, 1), rng.uniform(0.5, 1))]
    for _ in range(rng.randrange(4)):         # at the edge, alone or as a pair
        w, h = rng.uniform(0.08, 0.35), rng.uniform(0.08, 0.35); side = rng.random() < 0.5; b = body[0]
        x, y = (b["w"] + 0.7 * w, jitter(0.6)) if side else (jitter(0.5), rng.choice([-1, 1]) * (b["h"] + 0.7 * h)); one = part(x, y, w, h)
        body += [one, {**one, "x": -x}] if rng.random() < 0.6 else [one]
    marks = []
    for _ in range(rng.choice([0, 1, 2, 2, 3])):
        w, h = rng.uniform(0.1, 0.45), rng.uniform(0.1, 0.3); x, y = rng.uniform(0, 0.6) * body[0]["w"], jitter(0.6) * body[0]["h"]; one = part(x, y, w, h)
        marks += [{**one, "w": min(w, max(0.1, x - 0.08))}, {**one, "w": min(w, max(0.1, x - 0.08)), "x": -x}] if rng.random() < 0.5 and x > 0.2 else [{**one, "x": rng.choice([0, x, -x])}]
    return {"ground": ground, "color": color, "inner": inner, "x": jitter(0.08) * max(1, aspect), "y": jitter(0.08) * max(1, 1 / aspect), "r": r, "body": body, "marks": marks}


def parts(s, x, y):
    """As robot.parts."""
    def box(p):
        w, h = p["w"] * s["r"], p["h"] * s["r"]; k = p["round"] * min(w, h); dx, dy = (x - p["x"] * s["r"]).abs() - w + k, (y - p["y"] * s["r"]).abs() - h + k
        return torch.hypot(dx.clamp(min=0), dy.clamp(min=0)) + torch.maximum(dx, dy).clamp(max=0) - k
    body = [box(p) for p in s["body"]]; whole = torch.stack(body).amin(0)
    return body, [torch.maximum(box(p), whole + 0.01) for p in s["marks"]] or [torch.full_like(x, 1.0)]


def render(specs, height=512, width=512): return robot.render(specs, height, width, parts)
def fields(specs, height=512, width=512): return robot.fields(specs, height, width, parts)
