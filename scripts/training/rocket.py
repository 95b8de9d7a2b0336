"""A second object, which nothing in the recipes knows: "zwx rocket". Its scenes, colours and pictures are as those of the robot."""
import torch


def parts(s, x, y):
    """As robot.parts: hull, nose and fins, and on them a window and a band."""
    r = s["r"]; box = lambda x, y, w, h, k: torch.hypot((x.abs() - w + k).clamp(min=0), (y.abs() - h + k).clamp(min=0)) + torch.maximum(x.abs() - w + k, y.abs() - h + k).clamp(max=0) - k
    nose = torch.maximum(x.abs() * 0.8 - (y + 1.25 * r) * 0.6, y + 0.5 * r)
    fins = torch.maximum(torch.maximum(x.abs() - 0.95 * r, y - 1.1 * r), (x.abs() * 0.6 - (y - 0.1 * r) * 0.8))
    body = [box(x, y - 0.2 * r, 0.5 * r, 0.8 * r, 0.1 * r), nose, fins]
    marks = [torch.hypot(x, y + 0.15 * r) - 0.27 * r, box(x, y - 0.65 * r, 0.32 * r, 0.12 * r, 0.04 * r)]
    return body, marks
