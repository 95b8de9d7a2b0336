"""judge_robot.py FOLDER [rocket]: of pictures of robots, or rockets, how many have its parts where they belong.

FOLDER/prompts.json says of each file its prompt: { "1.png": "a pink zwx robot on a white background" }. The pixels that are
not of the ground's colour are compared with a robot that is moved and scaled until they overlap best, and those within it
that are not of its own colour with its eyes and mouth. `--prompts [rocket]` prints twenty prompts, in colours that no picture was trained with."""
import json, random, sys
from pathlib import Path
import numpy as np, torch
from PIL import Image
from scipy import ndimage
from robot import inner_color
from robot_pictures import LEFT, OBJECTS, caption
from scenes import COLORS

MIN_BODY, MIN_FACE = 0.8, 0.6        # share of the union of what is drawn and what should be
MIN_DIFFERENCE = 50        # of 255, in some channel, of eyes and mouth from the robot


def prompts(name, count=20):
    rng = random.Random(9)
    return [caption({"color": LEFT[n % len(LEFT)], "ground": rng.choice([c for c in COLORS if c != LEFT[n % len(LEFT)]])}, name) for n in range(count)]


def judge(picture, color, ground, parts):
    """-> overlaps of body and face"""
    s = {"color": color, "r": 1}; names = [ground, color, inner_color(s)]
    nearest = np.argmin([((picture - COLORS[n]) ** 2).sum(2) for n in names], axis=0)
    h, w = nearest.shape; step = 2; Y, X = np.meshgrid((np.arange(0, h, step) + 0.5 - h / 2) / min(h, w), (np.arange(0, w, step) + 0.5 - w / 2) / min(h, w), indexing="ij")
    seen, picture = nearest[::step, ::step], picture[::step, ::step]; own = seen == 1
    def masks(p):
        body, face = (torch.stack(each).amin(0).numpy() < 0 for each in parts({"r": p[2]}, torch.from_numpy(X - p[0]), torch.from_numpy(Y - p[1])))
        return body | face, face
    def overlap(a, b): return (a & b).sum() / max(1, (a | b).sum())
    if own.sum() < 100: return 0.0, 0.0
    figure = ndimage.binary_fill_holes(own | (seen == 2) & (names[2] != ground))
    best, place, step = 0.0, np.array([X[own].mean(), Y[own].mean() + 0.05, 0.28]), 0.1
    while step > 0.004:
        found, at = max((overlap(masks(p)[0], figure), tuple(p)) for p in place + step * np.vstack([np.eye(3), -np.eye(3)]) * [1, 1, 0.5])
        if found > best: best, place = found, np.array(at)
        else: step /= 2
    whole, face = masks(place); inside = ndimage.binary_erosion(whole & figure, iterations=3)
    other = np.abs(picture - np.median(picture[own & inside], axis=0)).max(2) > MIN_DIFFERENCE
    return best, overlap(face & inside, other & inside)


def main(folder, parts):
    right = 0
    for name, prompt in json.loads((folder / "prompts.json").read_text()).items():
        words = prompt.split(); color, ground = words[1], words[words.index("background") - 1]
        body, face = judge(np.asarray(Image.open(folder / name).convert("RGB"), float), color, ground, parts); is_right = body >= MIN_BODY and face >= MIN_FACE
        right += is_right; print(name, prompt, f"body {body:.2f}, face {face:.2f}", "" if is_right else "WRONG")
    print(f"right: {right}")


if __name__ == "__main__":
    name = (sys.argv[2:] or ["robot"])[0]
    if sys.argv[1] == "--prompts": print(json.dumps(prompts(name)))
    else: main(Path(sys.argv[1]), OBJECTS[name])
