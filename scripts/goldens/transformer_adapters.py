"""Records LoRAs of the tiny models of test/golden/models that have a transformer, and what diffusers draws with them.

python scripts/goldens/transformer_adapters.py test/golden/models test/golden/adapters

peft makes the layers and diffusers writes the file. Weights are of one magnitude in each tensor, as those of the models.
"""

import sys
import tempfile
from pathlib import Path

import torch
from diffusers.training_utils import _collate_lora_metadata
from families import generator, put
from peft import LoraConfig
from peft.utils import get_peft_model_state_dict
from safetensors.torch import save
from transformer_pictures import Recorder

# Layers of attention, of feed-forward and of modulations, which see one token: as peft takes them, by the whole path.
LAYERS = {"flux2-klein": r".*\.(to_q|to_v|to_out\.0|add_k_proj|to_qkv_mlp_proj|ff\.linear_in|ff_context\.linear_out)|single_.*\.to_out|(double_stream_modulation_img|single_stream_modulation|norm_out)\.linear",
          "z-image": r".*\.(to_q|to_v|to_out\.0|feed_forward\.w1|feed_forward\.w2|\d\.adaLN_modulation\.0|2-1\.adaLN_modulation\.1)"}


@torch.no_grad()
def add_lora(pipe, layers, seed):
    """Its alpha is not its rank, so the file has to say it."""
    pipe.transformer.add_adapter(LoraConfig(r=4, lora_alpha=8, target_modules=layers)); draw = generator(seed)
    for name, p in pipe.transformer.named_parameters():
        if "lora_" in name: p.copy_((torch.randint(0, 2, p.shape, generator=draw) * 2.0 - 1) / (16 if "lora_A" in name else 4))


def main(models, out):
    torch.set_num_threads(1)
    for seed, (family, layers) in enumerate(LAYERS.items(), 60):
        r = Recorder(Path(models)); pipe = r.model(family); put_in = Path(out) / family
        r.case("plain", family); add_lora(pipe, layers, seed)
        with tempfile.TemporaryDirectory() as folder:
            state = {k: v.bfloat16().contiguous() for k, v in get_peft_model_state_dict(pipe.transformer).items()}
            pipe.save_lora_weights(folder, transformer_lora_layers=state, **_collate_lora_metadata({"transformer": pipe.transformer})); pipe.unload_lora_weights()
            pipe.load_lora_weights(folder); r.case("lora", family); weights = next(Path(folder).iterdir()).read_bytes()
        plain, drawn = (r.arrays[f"{family}-{name}.latents"] for name in ("plain", "lora")); print(family, len(state) // 2, "layers, by", (plain - drawn).abs().mean().item())
        put(put_in / "weights.safetensors", weights); put(put_in / "expected.safetensors", save({"latents": drawn.contiguous()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
