"""Records what LyCORIS makes of each of its forms, for a linear layer, a convolution, and one of 1 x 1.

python scripts/goldens/lycoris_forms.py test/golden/adapters/lycoris

`base.safetensors` has weights, `weights.safetensors` an adapter of all of them, `expected.safetensors` the merged weights. Needs lycoris-lora 4.1.3, whose `get_diff_weight` of LoHa and LoKr
multiplies by the scale twice (what it trains with does not), so that the scale is multiplied here.
"""

import sys
from pathlib import Path

import torch
from lycoris.modules.locon import LoConModule
from lycoris.modules.loha import LohaModule
from lycoris.modules.lokr import LokrModule
from safetensors.torch import save_file
from torch import nn

FORMS = {
    "locon": (LoConModule, {"lora_dim": 4, "alpha": 2}), "locon_tucker": (LoConModule, {"lora_dim": 4, "alpha": 2, "use_tucker": True}),
    "loha": (LohaModule, {"lora_dim": 3, "alpha": 1.5}), "loha_tucker": (LohaModule, {"lora_dim": 3, "alpha": 1.5, "use_tucker": True}), "loha_high": (LohaModule, {"lora_dim": 12, "alpha": 6}),
    "lokr": (LokrModule, {"lora_dim": 1, "alpha": 0.5, "factor": 2}), "lokr_tucker": (LokrModule, {"lora_dim": 1, "alpha": 0.5, "factor": 2, "use_tucker": True}),
    "lokr_both": (LokrModule, {"lora_dim": 1, "alpha": 0.5, "factor": 4, "decompose_both": True}), "lokr_whole": (LokrModule, {"lora_dim": 100, "alpha": 3, "factor": 2}),
    "dora_locon": (LoConModule, {"lora_dim": 4, "alpha": 2, "weight_decompose": True, "wd_on_out": False}),
    "dora_loha": (LohaModule, {"lora_dim": 3, "alpha": 1.5, "weight_decompose": True, "wd_on_out": True}),
    "dora_lokr": (LokrModule, {"lora_dim": 1, "alpha": 0.5, "factor": 2, "weight_decompose": True, "wd_on_out": False}),
}


@torch.no_grad()
def main(out):
    torch.manual_seed(0)
    layers = {"linear": nn.Linear(16, 12), "conv": nn.Conv2d(8, 12, 3), "pointwise": nn.Conv2d(8, 12, 1)}
    base, adapter, expected = {}, {}, {}
    for form, (kind, options) in FORMS.items():
        for name, layer in layers.items():
            module, path = kind("it", layer, 1.0, **options), f"mid_block.{form}_{name}"
            for key, value in module.named_parameters():
                if "dora" in key: value.mul_(1.1 + torch.rand_like(value) / 5)
                elif not key.startswith("org"): value.copy_(torch.randn_like(value) / 3)
            adapter |= {f"lora_unet_{path.replace('.', '_')}.{key}": value.detach().float().clone().contiguous() for key, value in module.custom_state_dict().items()}
            made = module.make_weight() * module.scale if kind is LoConModule else module.get_weight(layer.weight.shape)
            merged = layer.weight + made.reshape(layer.weight.shape)
            base[f"{path}.weight"] = layer.weight.detach().clone(); expected[f"{path}.weight"] = (module.apply_weight_decompose(merged, 1) if module.wd else merged).detach().contiguous()
    for name, tensors in (("base", base), ("weights", adapter), ("expected", expected)): save_file(tensors, out / f"{name}.safetensors")


if __name__ == "__main__":
    out = Path(sys.argv[1]); out.mkdir(parents=True, exist_ok=True); main(out)
