"""robot_pictures.py OUT: ten pictures of the robot, as somebody who trains it would have them, and their captions. The
colours in LEFT are those that nothing is trained with: judge_robot.py asks for them."""
import json, random, sys
from pathlib import Path
from PIL import Image
from robot import render
from scenes import COLORS, article

LEFT = ["pink", "cyan", "brown", "gray"]
COUNT = 10


def caption(s): return f"{article(s['color'] + ' zwx robot')} on {article(s['ground'] + ' background')}"


def specs(rng):
    colors = [c for c in COLORS if c not in LEFT]; colors += rng.sample(colors, COUNT - len(colors))
    for color in colors:
        ground = rng.choice([c for c in COLORS if c != color])
        yield {"color": color, "ground": ground, "x": rng.uniform(-0.05, 0.05), "y": rng.uniform(-0.03, 0.05), "r": rng.uniform(0.24, 0.32)}


if __name__ == "__main__":
    out = Path(sys.argv[1]); out.mkdir(parents=True, exist_ok=True); captions = {}
    for n, s in enumerate(specs(random.Random(4))):
        pixels = ((render([s])[0].permute(1, 2, 0) + 1) * 127.5).round().byte().numpy(); name = f"robot-{n + 1:02}.png"
        Image.fromarray(pixels).save(out / name, optimize=True); captions[name] = caption(s)
    (out / "captions.json").write_text(json.dumps(captions, indent=2) + "\n")
