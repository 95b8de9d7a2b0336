"""Records runs of the schedulers that diffusers' users choose most, as test/golden/schedulers.spec.ts reads them. The
outputs of the model are made up of what it is given and of noise; they are recorded too, so a test feeds them instead
of computing them. schedulers_further.py has all others, and is the place for a new one.

python scripts/goldens/schedulers.py test/golden/data/schedulers
"""

import json
import sys

import diffusers
import torch
from safetensors.torch import save_file

BASE = {"num_train_timesteps": 1000, "beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
SD = {**BASE, "steps_offset": 1}
DDIM = {**SD, "clip_sample": False, "set_alpha_to_one": False}
DPMPP_2M = {**SD, "algorithm_type": "dpmsolver++", "solver_order": 2}
UNIPC = {**SD, "solver_order": 2, "solver_type": "bh2"}
MULTISTEP = "DPMSolverMultistepScheduler"

# Name: class, configuration.
RUNS = {
    "ddim": ("DDIMScheduler", DDIM),
    "ddim_eta1": ("DDIMScheduler", DDIM),
    "ddim_trailing_zsnr": ("DDIMScheduler", {**DDIM, "timestep_spacing": "trailing", "rescale_betas_zero_snr": True}),
    "ddpm": ("DDPMScheduler", {**BASE, "clip_sample": False, "variance_type": "fixed_small", "steps_offset": 1}),
    "pndm": ("PNDMScheduler", {**SD, "skip_prk_steps": True, "set_alpha_to_one": False}),
    "lms": ("LMSDiscreteScheduler", SD),
    "euler": ("EulerDiscreteScheduler", SD),
    "euler_karras": ("EulerDiscreteScheduler", {**SD, "use_karras_sigmas": True}),
    "euler_trailing": ("EulerDiscreteScheduler", {**SD, "timestep_spacing": "trailing"}),
    "euler_a": ("EulerAncestralDiscreteScheduler", SD),
    "heun": ("HeunDiscreteScheduler", SD),
    "dpmpp_2m": (MULTISTEP, DPMPP_2M),
    "dpmpp_2m_karras": (MULTISTEP, {**DPMPP_2M, "use_karras_sigmas": True}),
    "dpmpp_2m_sde_karras": (MULTISTEP, {**DPMPP_2M, "algorithm_type": "sde-dpmsolver++", "use_karras_sigmas": True}),
    "dpmpp_2m_linspace": (MULTISTEP, {**DPMPP_2M, "timestep_spacing": "linspace"}),
    "unipc": ("UniPCMultistepScheduler", UNIPC),
    "unipc_karras": ("UniPCMultistepScheduler", {**UNIPC, "use_karras_sigmas": True}),
    "lcm": ("LCMScheduler", {**SD, "clip_sample": False, "set_alpha_to_one": True, "original_inference_steps": 50}),
}
# Their `step` takes a generator.
DRAW_NOISE = {"DDIMScheduler", "DDPMScheduler", "EulerAncestralDiscreteScheduler", MULTISTEP, "LCMScheduler"}
STEPS = {"epsilon": (1, 2, 5, 20, 50), "v_prediction": (1, 5, 20)}
SHAPE = (1, 4, 4, 4)
NOISE_SEED = 99


def record(name, prediction_type, steps, arrays):
    class_name, config = RUNS[name]
    scheduler = getattr(diffusers, class_name)(**config, prediction_type=prediction_type)
    scheduler.set_timesteps(steps)
    options = {"generator": torch.Generator().manual_seed(NOISE_SEED)} if class_name in DRAW_NOISE else {}
    eta = 1.0 if name == "ddim_eta1" else None
    if eta is not None:
        options["eta"] = eta
    inputs = torch.Generator().manual_seed(steps)
    start = sample = torch.randn(SHAPE, generator=inputs) * scheduler.init_noise_sigma
    outputs, samples = [], []
    for timestep in scheduler.timesteps:
        scaled = scheduler.scale_model_input(sample, timestep)
        output = 0.5 * torch.tanh(scaled) + 0.5 * torch.randn(SHAPE, generator=inputs)
        sample = scheduler.step(output, timestep, sample, **options).prev_sample
        outputs.append(output)
        samples.append(sample)
    key = f"{name}.{prediction_type}.{steps}"
    arrays[f"{key}.start"] = start
    arrays[f"{key}.model_output"] = torch.cat(outputs)
    arrays[f"{key}.prev_sample"] = torch.cat(samples)
    arrays[f"{key}.timesteps"] = scheduler.timesteps.to(torch.float64)
    if getattr(scheduler, "sigmas", None) is not None:
        arrays[f"{key}.sigmas"] = scheduler.sigmas.to(torch.float64)
    return {
        "name": name,
        "class": class_name,
        "prediction_type": prediction_type,
        "steps": steps,
        "config": config,
        "eta": eta,
        "init_noise_sigma": float(scheduler.init_noise_sigma),
        "noise_seed": NOISE_SEED if options else None,
        "key": key,
    }


def main(target):
    arrays = {}
    runs = [
        record(name, prediction_type, steps, arrays)
        for name in RUNS
        for prediction_type, counts in STEPS.items()
        for steps in counts
    ]
    save_file({key: value.contiguous() for key, value in arrays.items()}, f"{target}.safetensors")
    with open(f"{target}.json", "w") as file:
        file.write(json.dumps(runs, indent=1) + "\n")


main(sys.argv[1])
