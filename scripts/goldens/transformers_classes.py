"""Makes tiny models of the classes of diffusion transformers, their text encoder and autoencoders, and what they give.

python scripts/goldens/transformers_classes.py test/golden/transformers [class...]

Each class has a file of weights and one of cases: `<case>.<input>` and `<case>.<output>`, integers as float32 too. Weights
are random, of one magnitude in each tensor (a power of two, so bfloat16 holds them exactly) and of either sign, because
such a file takes a tenth of its size when compressed. The rows of a case differ in all inputs.
"""

import gzip
import sys
from pathlib import Path

import torch
from diffusers import AutoencoderKLFlux2, ErnieImageTransformer2DModel, Flux2Transformer2DModel, ZImageTransformer2DModel
from families import coarse, generator, picture, randomise
from safetensors.torch import save
from transformers import MistralConfig, MistralModel, Qwen3Config, Qwen3ForCausalLM


def grid(*axes):
    return torch.cartesian_prod(*[torch.arange(n) for n in axes])


def times(rows):
    return torch.linspace(0.97, 0.13, rows)


def flux2():
    model = Flux2Transformer2DModel(
        in_channels=16, num_layers=2, num_single_layers=2, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=24, axes_dims_rope=(4, 4, 4, 4), guidance_embeds=False)
    yield randomise(model, 1)
    for rows, height, width, text in ((1, 6, 6, 20), (2, 4, 8, 33), (3, 6, 6, 7)):
        sample, states = coarse(rows, 16, height, width, seed=rows), coarse(rows, text, 24, seed=rows + 10)
        y = model(
            hidden_states=sample.flatten(2).mT, encoder_hidden_states=states, timestep=times(rows),
            img_ids=grid(1, height, width, 1), txt_ids=grid(1, 1, 1, text), guidance=None, return_dict=False)[0]
        yield {"sample": sample, "encoder_hidden_states": states, "timestep": times(rows), "out_sample": y.mT.reshape(sample.shape)}


def z_image():
    model = ZImageTransformer2DModel(
        in_channels=4, dim=32, n_layers=2, n_refiner_layers=1, n_heads=2, n_kv_heads=2, cap_feat_dim=24,
        axes_dims=[4, 6, 6], axes_lens=[256, 64, 64])
    yield randomise(model, 4)
    for height, width, texts in ((8, 8, (32,)), (12, 10, (20, 31)), (16, 16, (33, 64, 50))):
        rows, text = len(texts), -(-max(texts) // 32) * 32
        sample, states = coarse(rows, 4, height, width, seed=rows), coarse(rows, text, 24, seed=rows + 10)
        y = model(list(sample[:, :, None]), times(rows), [states[row, :real] for row, real in enumerate(texts)], return_dict=False)[0]
        is_padding = (torch.arange(text) >= torch.tensor(texts)[:, None])[:, :, None]
        yield {
            "sample": sample, "encoder_hidden_states": states, "is_padding": is_padding, "timestep": times(rows),
            "out_sample": torch.stack(list(y))[:, :, 0]}


def ernie_image():
    """The rows of a case have texts of one length, as those of a call."""
    model = ErnieImageTransformer2DModel(
        hidden_size=32, num_attention_heads=2, num_layers=3, ffn_hidden_size=48, in_channels=16, out_channels=16,
        text_in_dim=24, rope_axes_dim=(4, 6, 6))
    yield randomise(model, 6)
    for rows, height, width, text in ((1, 6, 6, 20), (2, 4, 8, 33), (3, 6, 6, 1)):
        sample, states = coarse(rows, 16, height, width, seed=rows), coarse(rows, text, 24, seed=rows + 10)
        y = model(sample, 1000 * times(rows), states, torch.full((rows,), text), return_dict=False)[0]
        yield {"sample": sample, "encoder_hidden_states": states, "timestep": 1000 * times(rows), "out_sample": y}


def mistral():
    """As ERNIE-Image's configuration has it: positions of YaRN."""
    rope = {
        "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 16384,
        "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}
    model = MistralModel(MistralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=5, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, rms_norm_eps=1e-5, sliding_window=None, rope_parameters=rope))
    yield randomise(model, 7)
    yield from states_of(model)


def qwen3():
    config = Qwen3Config(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=5, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    model = Qwen3ForCausalLM(config)
    yield randomise(model.model, 2)
    yield from states_of(model)


def states_of(model):
    for rows, tokens in ((1, 20), (2, 40), (3, 16)):
        ids = torch.randint(0, 64, (rows, tokens), generator=generator(rows))
        mask = (torch.arange(tokens) < torch.tensor([[tokens - 3 * row] for row in range(rows)])).int()
        states = model(input_ids=ids, attention_mask=mask, output_hidden_states=True, use_cache=False).hidden_states
        yield {"input_ids": ids.int(), "attention_mask": mask, "hidden_states": torch.cat([states[k] for k in (0, 2, 4)], 2)}


def patchify(x):
    rows, channels, height, width = x.shape
    return x.reshape(rows, channels, height // 2, 2, width // 2, 2).permute(0, 1, 3, 5, 2, 4).reshape(rows, channels * 4, height // 2, width // 2)


def flux2_autoencoder():
    """The calls of Flux2KleinInpaintPipeline: latents are patches, normalised by the statistics of a batch norm."""
    model = randomise(AutoencoderKLFlux2(
        block_out_channels=(16, 32), down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2,
        latent_channels=4, norm_num_groups=8, layers_per_block=1), 3)
    signs = torch.randint(0, 2, (2, 16), generator=generator(3)) * 2.0 - 1
    model.bn.running_mean.copy_(signs[0] / 4)
    model.bn.running_var.copy_(1 + signs[1] / 2)
    yield model
    mean, std = model.bn.running_mean.view(1, -1, 1, 1), torch.sqrt(model.bn.running_var + model.config.batch_norm_eps).view(1, -1, 1, 1)
    for rows, height, width in ((1, 4, 4), (2, 6, 4)):
        latents, sample = coarse(rows, 16, height, width, seed=rows), picture(rows, (4 * height, 4 * width), rows) * 2 - 1
        unpatched = (latents * std + mean).reshape(rows, 4, 2, 2, height, width).permute(0, 1, 4, 2, 5, 3).reshape(rows, 4, 2 * height, 2 * width)
        yield {
            "latent_sample": latents, "decoded": model.decode(unpatched).sample, "sample": sample,
            "latents": (patchify(model.encode(sample).latent_dist.mode()) - mean) / std}


def write(folder, name, make):
    model, *cases = make()
    kept = {key: value.bfloat16() for key, value in model.state_dict().items() if value.is_floating_point()}
    arrays = {f"{i}.{key}": value.float() for i, case in enumerate(cases) for key, value in case.items()}
    for kind, tensors in (("weights", kept), ("cases", arrays)):
        (folder / f"{name}.{kind}.safetensors.gz").write_bytes(gzip.compress(save({key: value.contiguous() for key, value in tensors.items()}), mtime=0))


CLASSES = {each.__name__: each for each in (flux2, z_image, ernie_image, mistral, qwen3, flux2_autoencoder)}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    with torch.no_grad():
        for name in sys.argv[2:] or CLASSES:
            write(folder, name, CLASSES[name])
