"""Records LoRAs and their kin of the tiny models of test/golden/models that have a transformer, in the names of the
original models, and what diffusers draws with what they make of the weights.

python scripts/goldens/transformer_dialects.py test/golden/models test/golden/adapters

diffusers' converters of checkpoints say which weights an original name is for. Its converter of LoRAs agrees where it
knows the layer, which is asserted for FLUX.2; but it leaves the halves of FLUX.2's last modulation as they are.
"""

import sys
from pathlib import Path

import diffusers
import torch
from diffusers.loaders.single_file_utils import convert_ernie_image_transformer_checkpoint_to_diffusers, convert_flux2_transformer_checkpoint_to_diffusers, convert_z_image_transformer_checkpoint_to_diffusers
from families import PROMPT, generator, put
from pictures_in import unpacked
from safetensors.torch import save
from transformer_models import ERNIE
from transformer_pictures import Recorder

LAYERS = {
    "flux2-klein": [f"double_blocks.{i}.{side}_{layer}" for i in range(2) for side in ("img", "txt") for layer in ("attn.qkv", "attn.proj", "mlp.0", "mlp.2")] + [f"single_blocks.{i}.linear{k}" for i in range(2) for k in (1, 2)]
    + ["img_in", "txt_in", "time_in.in_layer", "time_in.out_layer", "double_stream_modulation_img.lin", "double_stream_modulation_txt.lin", "single_stream_modulation.lin", "final_layer.linear", "final_layer.adaLN_modulation.1"],
    "z-image": [f"{block}.{layer}" for block in ("layers.0", "layers.1", "noise_refiner.0", "context_refiner.0") for layer in ("attention.qkv", "attention.out", "feed_forward.w1", "feed_forward.w2", "feed_forward.w3")]
    + ["layers.1.adaLN_modulation.0", "noise_refiner.0.adaLN_modulation.0", "x_embedder", "cap_embedder.1", "t_embedder.mlp.0", "t_embedder.mlp.2", "final_layer.linear", "final_layer.adaLN_modulation.1"],
    ERNIE: [f"layers.{i}.{layer}" for i in range(2) for layer in ("self_attention.to_q", "self_attention.to_k", "self_attention.to_v", "self_attention.to_out.0", "mlp.gate_proj", "mlp.up_proj", "mlp.linear_fc2")]
    + ["x_embedder.proj", "text_proj", "time_embedding.linear_1", "time_embedding.linear_2", "adaLN_modulation.1", "final_norm.linear", "final_linear"],
}
CONVERTERS = {ERNIE: convert_ernie_image_transformer_checkpoint_to_diffusers, "flux2-klein": convert_flux2_transformer_checkpoint_to_diffusers, "z-image": convert_z_image_transformer_checkpoint_to_diffusers}
# A LoKr and a DoRA of layers that are three, a LoHa, a LoKr in two pairs, and a DoRA whose halves are swapped in FLUX.2.
KIN = {"flux2-klein": {"lokr": "double_blocks.0.img_attn.qkv", "dora": "double_blocks.1.txt_attn.qkv", "loha": "single_blocks.0.linear1", "lokr_pairs": "double_blocks.1.img_mlp.0", "last": "final_layer.adaLN_modulation.1"},
       "z-image": {"lokr": "layers.0.attention.qkv", "dora": "layers.1.attention.qkv", "loha": "layers.0.feed_forward.w1", "lokr_pairs": "noise_refiner.0.attention.qkv", "last": "final_layer.adaLN_modulation.1"},
       ERNIE: {"lokr": "layers.0.self_attention.to_q", "dora": "layers.1.self_attention.to_v", "loha": "layers.0.mlp.up_proj", "lokr_pairs": "layers.1.mlp.linear_fc2", "last": "final_norm.linear"}}


class Original:
    """The layers of a model by their original names."""
    def __init__(self, family, transformer): self.convert, self.transformer, self.draw = CONVERTERS[family], transformer, generator(80)
    def parameters(self, layer): return [self.transformer.get_parameter(name) for name in self.convert({f"{layer}.weight": torch.zeros(6, 1)})]
    def shape(self, layer): own = self.parameters(layer); return sum(len(p) for p in own), own[0].shape[1]
    def signs(self, *shape, size): return (torch.randint(0, 2, shape, generator=self.draw) * 2.0 - 1) * size

    def weight(self, layer):
        whole = torch.cat(self.parameters(layer)); mark = torch.arange(2.0)[:, None]
        return whole if "qkv" in layer or self.convert({f"{layer}.weight": mark}).popitem()[1][0] == 0 else torch.cat(whole.chunk(2)[::-1])

    def add(self, deltas, sign=1):
        for name, delta in self.convert({f"{layer}.weight": delta for layer, delta in deltas.items()}).items(): p = self.transformer.get_parameter(name); p.add_(sign * delta.view_as(p))


def lora(original, layer, rank=2, alpha=1.0):
    (out, into), size = original.shape(layer), 1 / 8
    down, up = original.signs(rank, into, size=size), original.signs(out, rank, size=size)
    return {"lora_down.weight": down, "lora_up.weight": up, "alpha": torch.tensor(alpha)}, alpha / rank * up @ down


def kin(original, layers):
    made = {}; signs = original.signs
    out, into = original.shape(layers["lokr"]); f = {"lokr_w1": signs(4, 2, size=1 / 8), "lokr_w2": signs(out // 4, into // 2, size=1 / 8), "alpha": torch.tensor(3.0)}
    made[layers["lokr"]] = f, torch.kron(f["lokr_w1"], f["lokr_w2"])
    out, into = original.shape(layers["lokr_pairs"]); f = {"lokr_w1": signs(2, 4, size=1 / 4), "lokr_w2_a": signs(out // 2, 3, size=1 / 8), "lokr_w2_b": signs(3, into // 4, size=1 / 4), "alpha": torch.tensor(2.0)}
    made[layers["lokr_pairs"]] = f, 2 / 3 * torch.kron(f["lokr_w1"], f["lokr_w2_a"] @ f["lokr_w2_b"])
    out, into = original.shape(layers["loha"]); f = {"hada_w1_a": signs(out, 2, size=1 / 4), "hada_w1_b": signs(2, into, size=1 / 4), "hada_w2_a": signs(out, 2, size=1 / 4), "hada_w2_b": signs(2, into, size=1), "alpha": torch.tensor(4.0)}
    made[layers["loha"]] = f, 4 / 2 * (f["hada_w1_a"] @ f["hada_w1_b"]) * (f["hada_w2_a"] @ f["hada_w2_b"])
    for name in ("dora", "last"):
        layer = layers[name]; f, delta = lora(original, layer, alpha=8.0); weight = original.weight(layer); changed = weight + delta
        f["dora_scale"] = weight.norm(dim=1, keepdim=True) * (1 + signs(len(weight), 1, size=1 / 4))
        made[layer] = f, f["dora_scale"] * changed / changed.norm(dim=1, keepdim=True) - weight
    return made


@torch.no_grad()
def main(models, out):
    torch.set_num_threads(1)
    for family, layers in LAYERS.items():
        r = Recorder(Path(models)); pipe = diffusers.DiffusionPipeline.from_pretrained(unpacked(Path(models) / ERNIE), torch_dtype=torch.float32) if family == ERNIE else r.model(family)
        original = Original(family, pipe.transformer); files, expected = {}, {}
        def draw(name):
            if family == ERNIE: return pipe(prompt=PROMPT, height=64, width=64, num_inference_steps=4, guidance_scale=1.0, generator=generator(7), output_type="latent").images
            r.case(name, family); return r.arrays[f"{family}-{name}.latents"]
        plain = draw("plain"); made = {"lora": {layer: lora(original, layer) for layer in layers}, "kin": kin(original, KIN[family])}
        for name, adapter in made.items():
            files[name] = {f"{layer}.{key}": value.bfloat16().contiguous() if "dora" not in key else value for layer, (factors, _) in adapter.items() for key, value in factors.items()}
            deltas = {layer: delta for layer, (_, delta) in adapter.items()}
            original.add(deltas); expected[name] = draw(name).contiguous(); original.add(deltas, -1)
            print(family, name, len(adapter), "layers, by", (plain - expected[name]).abs().mean().item())
            put(Path(out) / f"{family}-original" / f"{name}.safetensors", save(files[name]))
        put(Path(out) / f"{family}-original" / "expected.safetensors", save(expected))
        if "flux2" in family:
            known = {layer: f for layer, (f, _) in made["lora"].items() if "adaLN" not in layer}; deltas = {layer: made["lora"][layer][1] for layer in known}
            original.add(deltas); by_hand = draw("by-hand"); original.add(deltas, -1)
            pipe.load_lora_weights({f"diffusion_model.{layer}.{key}": value for layer, f in known.items() for key, value in (("lora_A.weight", f["lora_down.weight"]), ("lora_B.weight", f["lora_up.weight"] * f["alpha"] / 2))})
            difference = (draw("peft") - by_hand).abs().max().item(); print("its converter of LoRAs differs by", difference); assert difference < 1e-4


if __name__ == "__main__":
    main(*sys.argv[1:])
