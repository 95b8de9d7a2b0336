"""judge.py SCENES.json LATENTS.pt [vae folder] [only]"""
import sys, json, time, torch
torch.set_num_threads(1)
from lib import *
scenes = json.loads(Path(sys.argv[1]).read_text()); z = torch.load(sys.argv[2]); vae = AutoencoderKL.from_pretrained(sys.argv[3] if len(sys.argv) > 3 else "parts/vae").eval()
name = Path(sys.argv[2]).stem + "-" + Path(sys.argv[3] if len(sys.argv) > 3 else "parts/vae").parent.name
if len(sys.argv) > 4: z = [v if scenes[i]["mode"] in sys.argv[4].split(",") else None for i, v in enumerate(z)]
line, rows = judge_latents(scenes, z, vae, f"judged/{name}"); print(name, line, flush=True)
