"""exact.py SCENES.json OUT.pt: the exact latents of the judge's scenes"""
import json, sys, torch
from lib import *; import fields as F
torch.set_num_threads(1)
sc = json.loads(Path(sys.argv[1]).read_text()); mean, std = (v.view(1, -1, 1, 1) for v in torch.load("parts/fields_stats.pt")); out = []
for s in sc:
    items = [dict(i) for i in s["items"]]; inside = s.get("relation") == "inside"
    out.append(((F.fields([{"ground": s["ground"], "kind": s["kind"], "items": items[::-1] if inside else items, "inside": inside}], *SIZE[s["format"]]) - mean) / std)[0])
torch.save(out, sys.argv[2])
