"""judge.py: draws random captions through a running service and counts the pictures that are right.

A picture is right when the ground's and the objects' colours, the number of objects, their outlines, and their places
or size are as the caption says. `--help` lists the options."""
import argparse, io, json, math, random, sys, time, urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import permutations
from pathlib import Path
import numpy as np, torch
from PIL import Image
from scipy import ndimage
from scenes import COLORS, SIZE, SIZES, _sdf, gloss, render, sample

COLOR_TOLERANCE = 30        # of 255, in any channel
GROUND_SHARE = 0.85         # of the ground that has its colour; the rest are edges of its marks
MIN_OVERLAP = 0.85          # of an outline with the true one
SPECK_AREA, SPECK_EROSIONS = 200, 2        # smaller or thinner regions are ignored
HIGHLIGHT_SHARE = 0.15      # largest hole of a glossy object that is its highlight on a light ground
WITHIN_SHARE = 0.97         # of an inner object that lies within the outer one
MIN_DISTANCE = 0.15         # for "above" or "left of", in short sides
SIZE_RANGE = (0.75, 1.3)    # of the size that is said
RELATIONS = ["and", "above", "below", "left of", "right of", "inside"]
AROUND = np.ones((3, 3))


class Scene:
    def __init__(self, caption, spec, size):
        self.caption, self.spec, self.size = caption, spec, size
        self.relation = next((r for r in RELATIONS if f" {r} " in caption), None)
        self.items = spec["items"][::-1] if spec["inside"] else spec["items"]        # in the caption's order
        self.mode = "one" if len(self.items) == 1 else "two" if self.relation else "many"
        h, w = size; short = min(size)
        self.y, self.x = np.meshgrid((np.arange(h) + 0.5 - h / 2) / short, (np.arange(w) + 0.5 - w / 2) / short, indexing="ij")

    def drawn(self, **changes):
        """The exact picture, or that of a spec with changes, as (height, width, 3) of 0 to 255."""
        return (render([self.spec | changes], *self.size)[0].permute(1, 2, 0).numpy() + 1) * 127.5


def distance(shape, x, y, r):
    return (r * _sdf(shape, torch.from_numpy(x / r), torch.from_numpy(y / r), 1.0)).numpy()


def glossy(color, x, y, r):
    paint = torch.tensor(COLORS[color]).view(3, 1, 1) / 255
    return gloss(paint, torch.from_numpy(x), torch.from_numpy(y), r).permute(1, 2, 0).numpy() * 255


def judge(scene, picture):
    """-> (problems, worst overlap of an outline with its true shape; 0 if the number of objects is wrong)"""
    masks, problems, overlap, placed = classify(scene, picture), [], 1.0, {}
    for color, mask in masks.items():
        items = [i for i in scene.items if i["color"] == color]; regions = regions_of(scene, mask, items)
        if len(regions) != len(items):
            problems.append(f"number: {len(regions)} {color} of {len(items)}"); overlap = 0.0
            continue
        for item, region in assign(scene, items, regions):
            placed[id(item)] = region; share = region["overlap"]; overlap = min(overlap, share)
            if share < MIN_OVERLAP: problems.append(f"outline: {item['shape']} {share:.2f}")
            off = color_difference(scene, item, region, picture)
            if off > COLOR_TOLERANCE: problems.append(f"color: {color} is off by {off:.0f}")
    if len(placed) == len(scene.items): problems += place_problems(scene, [placed[id(i)] for i in scene.items])
    free = ndimage.binary_erosion(~np.any(list(masks.values()), axis=0), iterations=4)
    right = (np.abs(picture - scene.drawn(items=[])) <= COLOR_TOLERANCE).all(2)[free]; share = right.mean() if right.size else 0
    if share < GROUND_SHARE: problems.append(f"ground: {share:.0%} right")
    return problems, overlap


def classify(scene, picture):
    """-> for each colour of an object the pixels that are nearest to it"""
    def squared(color): return ((picture - color) ** 2).sum(2)
    ground = scene.drawn(items=[], kind="gradient" if scene.spec["kind"] == "gradient" else "plain")
    grounds = [ground, ground * 0.65 + 20] if scene.spec["kind"] in ("striped", "dotted") else [ground]
    names, least = list(dict.fromkeys(i["color"] for i in scene.items)), [np.min([squared(g) for g in grounds], axis=0)]
    for name in names:
        variants = [np.array(COLORS[name])]
        if any(i["color"] == name and i["finish"] == "glossy" for i in scene.items):
            ys, xs = np.meshgrid([-1, -0.5, 0, 0.5, 1], [-0.35, 0, 0.3, 1.0], indexing="ij"); variants = glossy(name, xs, ys, 1.0).reshape(-1, 3)
        least.append(np.min([squared(v) for v in variants], axis=0))
    nearest = np.argmin(least, axis=0)
    return {name: nearest == k + 1 for k, name in enumerate(names)}


def parts_of(mask):
    """-> the connected parts of a mask, largest first"""
    label, count = ndimage.label(mask, AROUND)
    return sorted((label == k + 1 for k in range(count)), key=lambda part: -part.sum())


def filled(mask): return ndimage.binary_fill_holes(mask, AROUND)


def is_outer(scene, items): return scene.relation == "inside" and any(i is scene.items[1] for i in items)


def regions_of(scene, mask, items):
    """The regions of one colour, without specks; one inside another is part of it where the scene allows that."""
    nests = is_outer(scene, items) or any(i["shape"] == "ring" and i["finish"] == "outlined" for i in items); regions = []
    for part in parts_of(mask):
        if part.sum() < SPECK_AREA or not ndimage.binary_erosion(part, iterations=SPECK_EROSIONS).any(): continue
        around = next((r for r in regions if nests and not (part & ~r["filled"]).any()), None)
        if around: around["mask"] = around["mask"] | part
        else: regions.append({"mask": part, "filled": filled(part)})
    return regions


def assign(scene, items, regions):
    """Pairs items with regions so that the outlines overlap best."""
    fits = [[r | fit(scene, i["shape"], r["filled"] if is_outer(scene, items) else silhouette(i, r)) for r in regions] for i in items]
    same = all(i["shape"] == items[0]["shape"] and i["finish"] == items[0]["finish"] for i in items); orders = [tuple(range(len(items)))] if same else permutations(range(len(items)))
    best = max(orders, key=lambda order: min(fits[k][n]["overlap"] for k, n in enumerate(order)))
    return [(item, fits[k][n]) for k, (item, n) in enumerate(zip(items, best))]


def silhouette(item, region):
    """The area of an item, from its outline."""
    mask, whole = region["mask"], region["filled"]; holes = parts_of(whole & ~mask)
    if item["shape"] == "ring":
        y, x = (round(v) for v in ndimage.center_of_mass(whole)); centre = next((h for h in holes if h[y, x]), None)
        return whole if centre is None else whole & ~centre
    if item["finish"] == "outlined": return whole
    if item["finish"] != "glossy": return mask
    return np.any([mask, *(h for h in holes if h.sum() <= HIGHLIGHT_SHARE * whole.sum())], axis=0)


@cache
def unit(shape):
    """-> area and centroid of a shape of radius 1"""
    at = ((np.arange(400) + 0.5) / 400 - 0.5) * 2.6; y, x = np.meshgrid(at, at, indexing="ij"); inside = distance(shape, x, y, 1.0) < 0
    return inside.mean() * 2.6 ** 2, x[inside].mean(), y[inside].mean()


def fit(scene, shape, mask):
    """Moves and scales the true shape over a region until they overlap best. -> place and share of the union"""
    area, ux, uy = unit(shape); mask, X, Y = mask[::2, ::2], scene.x[::2, ::2], scene.y[::2, ::2]; n = mask.sum()
    r = math.sqrt(4 * n / min(scene.size) ** 2 / area); place = np.array([X[mask].mean() - ux * r, Y[mask].mean() - uy * r, r])
    def overlap(p):
        inside = distance(shape, X - p[0], Y - p[1], p[2]) < 0
        return (inside & mask).sum() / (inside | mask).sum()
    best, step = overlap(place), 0.1
    while step > 0.005:
        found, at = max(((overlap(p), tuple(p)) for p in (place + step * r * move for move in np.vstack([np.eye(3), -np.eye(3)]))))
        if found > best: best, place = found, np.array(at)
        else: step /= 2
    return {"x": place[0], "y": place[1], "r": place[2], "overlap": best, "silhouette": mask}


def color_difference(scene, item, region, picture):
    """The largest difference of a channel in the median of a region's pixels."""
    inner = ndimage.binary_erosion(region["mask"], iterations=3)
    if not inner.any(): return math.inf
    wanted = glossy(item["color"], scene.x - region["x"], scene.y - region["y"], region["r"]) if item["finish"] == "glossy" else np.broadcast_to(COLORS[item["color"]], picture.shape)
    return np.abs(np.median((picture - wanted)[inner], axis=0)).max()


def place_problems(scene, regions):
    first, second = regions[0], regions[-1]
    if scene.mode == "one":
        said = SIZES[next((size for size in SIZES if size and f" {size} " in scene.caption), "")]; ratio = first["r"] / said
        return [] if SIZE_RANGE[0] <= ratio <= SIZE_RANGE[1] else [f"size: {ratio:.2f} of what was said"]
    if scene.mode == "many" or scene.relation == "and": return []
    if scene.relation == "inside":
        inner = first["silhouette"]; within = inner & second["filled"][::2, ::2]
        return [] if within.sum() >= WITHIN_SHARE * inner.sum() else ["place: it is not inside"]
    dx, dy = second["x"] - first["x"], second["y"] - first["y"]; ahead = {"above": dy, "below": -dy, "left of": dx, "right of": -dx}[scene.relation]
    return [] if ahead > MIN_DISTANCE else [f"place: it is not {scene.relation}"]


def scenes_of(seed, count):
    """Random scenes, without those whose exact picture is ambiguous, such as gray on a gradient that ends in gray."""
    rng = random.Random(seed)
    while count > 0:
        size = SIZE[rng.choices(list(SIZE), [0.64, 0.18, 0.18])[0]]; scene = Scene(*sample(rng, size[1] / size[0]), size)
        if not judge(scene, scene.drawn())[0]: count -= 1; yield scene


def draw(options, scene, seed):
    """-> the picture's file"""
    def ask(path, body=None):
        headers = {"authorization": f"Bearer {options.key}", "content-type": "application/json", "prefer": "wait=30"}
        return json.load(urllib.request.urlopen(urllib.request.Request(options.url + "/v1/sd/text-to-image" + path, body and json.dumps(body).encode(), headers)))
    format = next(name for name, size in SIZE.items() if size == scene.size); settings = {k: v for k in ("cfg", "steps", "scheduler") if (v := getattr(options, k)) is not None}
    record = ask("", {"prompt": scene.caption, "aspect_ratio": format, "model": options.model, "seed": seed} | settings)
    while record["status"] in ("queued", "processing"): time.sleep(0.2); record = ask(f"/{record['id']}")
    if record["status"] != "succeeded": sys.exit(f"{scene.caption}: {record['status']}")
    return urllib.request.urlopen(record["images"][0]).read()


def main():
    parser = argparse.ArgumentParser(description="Draws random captions through a running service and counts the pictures that are right.", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--url", default="http://localhost:3000"); add("--key", help="else the content of .darkroom/api-key"); add("--model", default="shapes")
    add("--count", type=int, default=200); add("--seed", type=int, default=1, help="of the captions and pictures"); add("--keep", type=Path, help="folder for the pictures that are wrong")
    add("--cfg", type=float); add("--steps", type=int); add("--scheduler", help="as in a request; else the model's own")
    options = parser.parse_args(); options.key = options.key or (Path(__file__).parents[2] / ".darkroom/api-key").read_text().strip()

    def one(numbered):
        n, scene = numbered; file = draw(options, scene, options.seed * 1000 + n); problems, overlap = judge(scene, np.asarray(Image.open(io.BytesIO(file)).convert("RGB"), float))
        print(n + 1, scene.caption, problems or "", file=sys.stderr)
        if options.keep and problems: options.keep.mkdir(parents=True, exist_ok=True); (options.keep / f"{n} {scene.caption}.png").write_bytes(file)
        return scene.mode, problems, overlap

    with ThreadPoolExecutor(4) as pool: verdicts = list(pool.map(one, enumerate(scenes_of(options.seed, options.count))))
    print(f"right: {sum(not p for _, p, _ in verdicts) / len(verdicts):.1%}, mean overlap: {sum(o for *_, o in verdicts) / len(verdicts):.3f}, wrong:", dict(Counter(k for _, p, _ in verdicts for k in {q.split(':')[0] for q in p})))
    for mode in ("one", "two", "many"): those = [not p for m, p, _ in verdicts if m == mode]; print(f"{mode}: {sum(those)} of {len(those)}")


if __name__ == "__main__": main()
