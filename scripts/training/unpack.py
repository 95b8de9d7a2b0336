"""unpack.py MODEL: from a model folder (ONNX) back to the parts that the training scripts go on from, in SHAPES_OUT.

The exporter stores equal tensors once: a missing one is found through the node that reads it."""
import json, shutil, sys
from pathlib import Path
import numpy as np, onnx, torch
from onnx import numpy_helper
from common import OUT, text_model, unet_model, vae_model


def fill(module, path):
    g = onnx.load(path).graph
    held = {t.name.removesuffix("_f16"): torch.tensor(numpy_helper.to_array(t).astype(np.float32)) for t in g.initializer}
    made = {n.output[0]: n for n in g.node}
    # node name (module path) -> its parameters, in the order weight, bias
    own = module.state_dict(); found, missing = {}, []
    def root(name):                                                   # through Cast, Reshape, Unsqueeze, Transpose to an initializer
        while name.removesuffix("_f16") not in held:
            n = made.get(name)
            if n is None or n.op_type not in ("Cast", "Identity", "Transpose", "Unsqueeze", "Reshape"): return None
            name = n.input[0]
        return name.removesuffix("_f16")
    by_path = {}
    for n in g.node:
        params = [r for r in map(root, n.input) if r]
        by_path.setdefault("/".join(n.name.strip("/").split("/")[:-1]).replace("/", "."), []).append((n.op_type, params))
    for k, v in own.items():
        if k in held and held[k].numel() == v.numel(): found[k] = held[k].reshape(v.shape); continue
        if "position_ids" in k or k.startswith(("encoder.", "quant_conv")): continue
        base, leaf = k.rsplit(".", 1)
        near = [p for q, ops in by_path.items() if q.endswith(base) or base.endswith(q) and q for op, ps in ops for p in ps if held[p].numel() == v.numel() and (p.rsplit(".", 1)[-1] == leaf)]
        near = list(dict.fromkeys(near))
        missing.append((k, near))
        if len(near) >= 1: found[k] = held[near[0]].reshape(v.shape)
    return found, missing


if __name__ == "__main__":
    model = Path(sys.argv[1]); n = len(json.loads((model / "tokenizer/vocab.json").read_text()))
    for m, name, out in ((unet_model(), "unet", "unet"), (text_model(n), "text_encoder", "text_encoder"), (vae_model(), "vae_decoder", "vae")):
        found, missing = fill(m, model / name / "model.onnx")
        for k, near in missing: print(name, k, near)
        print(name, m.load_state_dict(found, strict=False).missing_keys[:3]); m.save_pretrained(OUT / out)
    shutil.copytree(model / "tokenizer", OUT / "tokenizer", dirs_exist_ok=True)
    q = found; torch.save((q["post_quant_conv.bias"], q["post_quant_conv.weight"].diagonal(dim1=0, dim2=1)[0, 0].clone()), OUT / "fields_stats.pt")
