"""robot_pictures.py OUT [rocket]: ten pictures of the robot, or of the rocket, as somebody who trains it would have them, each on another ground, and their captions. The
colours in LEFT are those that nothing is trained with: judge_robot.py asks for them."""
import json, random, sys
from pathlib import Path
from PIL import Image
import robot, rocket
from scenes import COLORS, article

LEFT = ["pink", "cyan", "brown", "gray"]
COUNT = 10
OBJECTS = {"robot": robot.parts, "rocket": rocket.parts}


def caption(s, name="robot"): return f"{article(s['color'] + ' zwx ' + name)} on {article(s['ground'] + ' background')}"


def specs(rng):
    colors = [c for c in COLORS if c not in LEFT]; colors += rng.sample(colors, COUNT - len(colors))
    grounds = rng.sample(list(COLORS), COUNT)
    while any(map(str.__eq__, colors, grounds)): rng.shuffle(grounds)
    for color, ground in zip(colors, grounds):
        yield {"color": color, "ground": ground, "x": rng.uniform(-0.05, 0.05), "y": rng.uniform(-0.03, 0.05), "r": rng.uniform(0.24, 0.32)}


if __name__ == "__main__":
    out, name = Path(sys.argv[1]), (sys.argv[2:] or ["robot"])[0]; out.mkdir(parents=True, exist_ok=True); captions = {}
    for n, s in enumerate(specs(random.Random(4))):
        pixels = ((robot.render([s], parts=OBJECTS[name])[0].permute(1, 2, 0) + 1) * 127.5).round().byte().numpy(); file = f"{name}-{n + 1:02}.png"
        Image.fromarray(pixels).save(out / file, optimize=True); captions[file] = caption(s, name)
    (out / "captions.json").write_text(json.dumps(captions, indent=2) + "\n")
