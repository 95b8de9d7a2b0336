"""Records runs of diffusers' schedulers, as test/golden/schedulers.spec.ts reads them: `schedulers` are those that its
users choose most, with outputs of a model made up of what it is given and of noise; `schedulers-further` are every other
class and parameter, with outputs of noise alone; `schedulers-flow` are those for flow matching, also from a picture to
start from. Outputs are recorded too, so a test feeds them instead of computing them. A new scheduler is listed in FURTHER
or FLOW.

python scripts/goldens/schedulers.py test/golden/data
python scripts/goldens/schedulers.py test/golden/data schedulers-flow
"""

import json
import sys

import diffusers
import numpy
import torch
from diffusers.pipelines.flux2.pipeline_flux2_klein import compute_empirical_mu
from diffusers.pipelines.z_image.pipeline_z_image import calculate_shift
from safetensors.torch import save_file

BASE = {"num_train_timesteps": 1000, "beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
SD = {**BASE, "steps_offset": 1}
DDIM = {**SD, "clip_sample": False, "set_alpha_to_one": False}
DPMPP_2M = {**SD, "algorithm_type": "dpmsolver++", "solver_order": 2}
UNIPC = {**SD, "solver_order": 2, "solver_type": "bh2"}
MULTISTEP, SINGLESTEP, DEIS = "DPMSolverMultistepScheduler", "DPMSolverSinglestepScheduler", "DEISMultistepScheduler"
KDPM2, KDPM2_A, SDE = "KDPM2DiscreteScheduler", "KDPM2AncestralDiscreteScheduler", "DPMSolverSDEScheduler"
NOISE_SEED = 99

# Name, class, configuration; `eta` is an argument of step.
CHOSEN_MOST = [
    ("ddim", "DDIMScheduler", DDIM),
    ("ddim_eta1", "DDIMScheduler", {**DDIM, "eta": 1.0}),
    ("ddim_trailing_zsnr", "DDIMScheduler", {**DDIM, "timestep_spacing": "trailing", "rescale_betas_zero_snr": True}),
    ("ddpm", "DDPMScheduler", {**BASE, "clip_sample": False, "variance_type": "fixed_small", "steps_offset": 1}),
    ("pndm", "PNDMScheduler", {**SD, "skip_prk_steps": True, "set_alpha_to_one": False}),
    ("lms", "LMSDiscreteScheduler", SD),
    ("euler", "EulerDiscreteScheduler", SD),
    ("euler_karras", "EulerDiscreteScheduler", {**SD, "use_karras_sigmas": True}),
    ("euler_trailing", "EulerDiscreteScheduler", {**SD, "timestep_spacing": "trailing"}),
    ("euler_a", "EulerAncestralDiscreteScheduler", SD),
    ("heun", "HeunDiscreteScheduler", SD),
    ("dpmpp_2m", MULTISTEP, DPMPP_2M),
    ("dpmpp_2m_karras", MULTISTEP, {**DPMPP_2M, "use_karras_sigmas": True}),
    ("dpmpp_2m_sde_karras", MULTISTEP, {**DPMPP_2M, "algorithm_type": "sde-dpmsolver++", "use_karras_sigmas": True}),
    ("dpmpp_2m_linspace", MULTISTEP, {**DPMPP_2M, "timestep_spacing": "linspace"}),
    ("unipc", "UniPCMultistepScheduler", UNIPC),
    ("unipc_karras", "UniPCMultistepScheduler", {**UNIPC, "use_karras_sigmas": True}),
    ("lcm", "LCMScheduler", {**SD, "clip_sample": False, "set_alpha_to_one": True, "original_inference_steps": 50}),
]
# Name, class, configuration beyond SD; `eta` is an argument of step.
FURTHER = [
    ("deis", DEIS, {}),
    ("deis_3_leading", DEIS, {"solver_order": 3, "timestep_spacing": "leading"}),
    ("deis_karras", DEIS, {"use_karras_sigmas": True}),
    ("dpmpp_2s", SINGLESTEP, {}),
    ("dpmpp_2s_heun", SINGLESTEP, {"solver_type": "heun", "lower_order_final": True, "use_karras_sigmas": True}),
    ("dpmpp_3s", SINGLESTEP, {"solver_order": 3, "lower_order_final": True}),
    ("dpmpp_3s_heun", SINGLESTEP, {"solver_order": 3, "solver_type": "heun", "lower_order_final": True}),
    ("dpm_3s", SINGLESTEP, {"solver_order": 3, "algorithm_type": "dpmsolver", "final_sigmas_type": "sigma_min"}),
    ("dpm_3s_heun", SINGLESTEP, {"solver_order": 3, "algorithm_type": "dpmsolver", "solver_type": "heun", "final_sigmas_type": "sigma_min"}),
    ("dpm_2s", SINGLESTEP, {"algorithm_type": "dpmsolver", "final_sigmas_type": "sigma_min"}),
    ("dpm_2s_heun", SINGLESTEP, {"algorithm_type": "dpmsolver", "solver_type": "heun", "final_sigmas_type": "sigma_min"}),
    ("dpmpp_3s_sde", SINGLESTEP, {"solver_order": 3, "algorithm_type": "sde-dpmsolver++", "lower_order_final": True}),
    ("dpmpp_3s_sde_heun", SINGLESTEP, {"solver_order": 3, "algorithm_type": "sde-dpmsolver++", "solver_type": "heun"}),
    ("dpm_2m", MULTISTEP, {"algorithm_type": "dpmsolver", "final_sigmas_type": "sigma_min"}),
    ("dpm_2m_heun", MULTISTEP, {"algorithm_type": "dpmsolver", "solver_type": "heun", "final_sigmas_type": "sigma_min"}),
    ("dpm_3m", MULTISTEP, {"algorithm_type": "dpmsolver", "solver_order": 3, "final_sigmas_type": "sigma_min"}),
    ("dpm_2m_sde", MULTISTEP, {"algorithm_type": "sde-dpmsolver", "final_sigmas_type": "sigma_min"}),
    ("dpm_2m_sde_heun", MULTISTEP, {"algorithm_type": "sde-dpmsolver", "solver_type": "heun", "final_sigmas_type": "sigma_min"}),
    ("dpmpp_2m_exponential", MULTISTEP, {"use_exponential_sigmas": True}),
    ("dpmpp_2m_beta", MULTISTEP, {"use_beta_sigmas": True}),
    ("dpmpp_2m_lu", MULTISTEP, {"use_lu_lambdas": True}),
    ("dpmpp_2m_thresholding", MULTISTEP, {"thresholding": True, "sample_max_value": 1.5}),
    ("dpm_2m_thresholding", MULTISTEP, {"algorithm_type": "dpmsolver", "final_sigmas_type": "sigma_min", "thresholding": True}),
    ("unipc_beta", "UniPCMultistepScheduler", {"use_beta_sigmas": True}),
    ("unipc_thresholding", "UniPCMultistepScheduler", {"thresholding": True}),
    ("euler_exponential", "EulerDiscreteScheduler", {"use_exponential_sigmas": True}),
    ("euler_beta", "EulerDiscreteScheduler", {"use_beta_sigmas": True}),
    ("heun_beta", "HeunDiscreteScheduler", {"use_beta_sigmas": True}),
    ("lms_beta", "LMSDiscreteScheduler", {"use_beta_sigmas": True}),
    ("ddim_thresholding", "DDIMScheduler", {"thresholding": True, "dynamic_thresholding_ratio": 0.9, "sample_max_value": 2.0}),
    ("ddpm_thresholding", "DDPMScheduler", {"thresholding": True}),
    ("lcm_thresholding", "LCMScheduler", {"thresholding": True}),
    ("dpm2", KDPM2, {}),
    ("dpm2_karras", KDPM2, {"use_karras_sigmas": True, "timestep_spacing": "trailing"}),
    ("dpm2_exponential", KDPM2, {"use_exponential_sigmas": True, "timestep_spacing": "leading"}),
    ("dpm2_a", KDPM2_A, {}),
    ("dpm2_a_beta", KDPM2_A, {"use_beta_sigmas": True, "timestep_spacing": "leading"}),
    ("dpmpp_sde", SDE, {"noise_sampler_seed": NOISE_SEED}),
    ("dpmpp_sde_karras", SDE, {"noise_sampler_seed": NOISE_SEED, "use_karras_sigmas": True, "timestep_spacing": "leading"}),
    ("tcd", "TCDScheduler", {"eta": 0.0}),
    ("tcd_eta", "TCDScheduler", {"eta": 0.3}),
    ("edm_euler", "EDMEulerScheduler", {"sigma_min": 0.03, "sigma_max": 14.6}),
    ("edm_euler_exponential", "EDMEulerScheduler", {"sigma_schedule": "exponential", "final_sigmas_type": "sigma_min"}),
]
EULER_FLOW, HEUN_FLOW, UNIPC_FLOW = "FlowMatchEulerDiscreteScheduler", "FlowMatchHeunDiscreteScheduler", "UniPCMultistepScheduler"
DYNAMIC = {"use_dynamic_shifting": True}
SOLVES_FLOW = {"use_flow_sigmas": True, "prediction_type": "flow_prediction"}
# Name, class, configuration, and how a dynamic shift follows from the number of tokens.
FLOW = [
    ("flow_euler", EULER_FLOW, {}, None),
    ("flow_euler_shift", EULER_FLOW, {"shift": 3.0}, None),
    ("flow_euler_dynamic", EULER_FLOW, {**DYNAMIC, "base_shift": 0.4, "max_shift": 1.2, "base_image_seq_len": 200}, "line"),
    ("flow_euler_linear", EULER_FLOW, {**DYNAMIC, "time_shift_type": "linear"}, "line"),
    ("flow_euler_flux2", EULER_FLOW, {**DYNAMIC, "shift": 3.0}, "flux2"),
    ("flow_euler_terminal", EULER_FLOW, {**DYNAMIC, "shift_terminal": 0.02}, "line"),
    ("flow_euler_karras", EULER_FLOW, {"shift": 3.0, "use_karras_sigmas": True}, None),
    ("flow_euler_exponential", EULER_FLOW, {"shift": 3.0, "use_exponential_sigmas": True}, None),
    ("flow_euler_beta", EULER_FLOW, {"shift": 3.0, "use_beta_sigmas": True}, None),
    ("flow_heun", HEUN_FLOW, {}, None),
    ("flow_heun_shift", HEUN_FLOW, {"shift": 3.0}, None),
    ("flow_unipc", UNIPC_FLOW, SOLVES_FLOW, None),
    ("flow_unipc_shift", UNIPC_FLOW, {**SOLVES_FLOW, "flow_shift": 3.0}, None),
    ("flow_unipc_3", UNIPC_FLOW, {**SOLVES_FLOW, "flow_shift": 3.0, "solver_order": 3}, None),
    ("flow_unipc_flux2", UNIPC_FLOW, {**SOLVES_FLOW, **DYNAMIC}, "flux2"),
    ("flow_unipc_terminal", UNIPC_FLOW, {**SOLVES_FLOW, "shift_terminal": 0.02}, None),
    ("flow_dpmpp_2m", MULTISTEP, SOLVES_FLOW, None),
    ("flow_dpmpp_2m_shift", MULTISTEP, {**SOLVES_FLOW, "flow_shift": 3.0}, None),
    ("flow_dpmpp_2m_sde", MULTISTEP, {**SOLVES_FLOW, "flow_shift": 3.0, "algorithm_type": "sde-dpmsolver++"}, None),
    ("flow_dpmpp_2m_flux2", MULTISTEP, {**SOLVES_FLOW, **DYNAMIC}, "flux2"),
    ("flow_dpmpp_3m", MULTISTEP, {**SOLVES_FLOW, "flow_shift": 3.0, "solver_order": 3}, None),
    ("flow_dpmpp_2s", SINGLESTEP, {**SOLVES_FLOW, "flow_shift": 3.0}, None),
    ("flow_dpmpp_2s_flux2", SINGLESTEP, {**SOLVES_FLOW, **DYNAMIC}, "flux2"),
]
FLOW_STEPS, STRENGTH = (1, 4, 8, 30), 0.6
TOKENS = {None: (0,), "line": (256, 4096), "flux2": (1024, 4096, 4800)}
# Of CHOSEN_MOST: their `step` draws noise.
DRAW_NOISE = {"DDIMScheduler", "DDPMScheduler", "EulerAncestralDiscreteScheduler", MULTISTEP, "LCMScheduler"}
STEPS = {"epsilon": (1, 2, 5, 20, 50), "v_prediction": (1, 5, 20)}
FURTHER_STEPS = {"epsilon": (1, 2, 6, 16), "v_prediction": (7,)}


def record(run, prediction_type, steps, is_further, arrays):
    name, class_name, config = run
    eta = config.get("eta")
    config = {key: value for key, value in ({**SD, **config} if is_further else config).items() if key != "eta"}
    cls = getattr(diffusers, class_name)
    given = {**config, "prediction_type": prediction_type}
    scheduler = cls.from_config(given) if is_further else cls(**given)
    scheduler.set_timesteps(steps)
    draws_noise = "generator" in cls.step.__code__.co_varnames if is_further else class_name in DRAW_NOISE
    options = {"generator": torch.Generator().manual_seed(NOISE_SEED)} if draws_noise else {}
    if eta is not None:
        options["eta"] = eta
    inputs = torch.Generator().manual_seed(steps)
    shape = (1, 1, 4, 4) if is_further else (1, 4, 4, 4)
    start = sample = torch.randn(shape, generator=inputs) * scheduler.init_noise_sigma
    outputs, samples = [], []
    for timestep in scheduler.timesteps:
        scaled = scheduler.scale_model_input(sample, timestep)
        output = torch.randn(shape, generator=inputs)
        if not is_further:
            output = 0.5 * torch.tanh(scaled) + 0.5 * output
        sample = scheduler.step(output, timestep, sample, **options).prev_sample.to(torch.float32)
        outputs.append(output)
        samples.append(sample)
    key = f"{name}.{prediction_type}.{steps}"
    assert not is_further or torch.cat(samples).isfinite().all(), key
    arrays[f"{key}.start"] = start[0] if is_further else start
    arrays[f"{key}.model_output"] = torch.cat(outputs)
    arrays[f"{key}.prev_sample"] = torch.cat(samples)
    arrays[f"{key}.timesteps"] = torch.as_tensor(scheduler.timesteps).to(torch.float64)
    if not is_further and getattr(scheduler, "sigmas", None) is not None:
        arrays[f"{key}.sigmas"] = scheduler.sigmas.to(torch.float64)
    return {
        "name": name,
        "class": class_name,
        "prediction_type": prediction_type,
        "steps": steps,
        "config": config,
        "eta": eta,
        "init_noise_sigma": float(scheduler.init_noise_sigma),
        "noise_seed": NOISE_SEED if is_further or options else None,
        "key": key,
    }


def record_flow(run, steps, tokens, strength, arrays):
    name, class_name, config, rule = run
    scheduler = getattr(diffusers, class_name)(**config)
    options = {}
    if rule == "flux2":
        options["mu"] = compute_empirical_mu(tokens, steps)
    elif rule:
        lengths = scheduler.config.base_image_seq_len, scheduler.config.max_image_seq_len
        options["mu"] = calculate_shift(tokens, *lengths, scheduler.config.base_shift, scheduler.config.max_shift)
    if class_name == EULER_FLOW:
        scheduler.set_timesteps(sigmas=numpy.linspace(1.0, 1 / steps, steps), **options)
    else:
        scheduler.set_timesteps(steps, **options)
    # get_timesteps of the pipelines that start from a picture; others than these have add_noise in place of scale_noise.
    begin = int(max(steps - min(steps * strength, steps), 0)) * scheduler.order
    scheduler.set_begin_index(begin)
    add_noise = getattr(scheduler, "scale_noise", None) or (lambda image, t, noise: scheduler.add_noise(image, noise, t))
    inputs = torch.Generator().manual_seed(steps)
    image, noise = torch.randn(2, 1, 1, 4, 4, generator=inputs)
    timesteps = scheduler.timesteps[begin:]
    start = sample = add_noise(image, timesteps[:1], noise) if begin else noise.clone()
    draws_noise = {"generator": torch.Generator().manual_seed(NOISE_SEED)} if class_name in (MULTISTEP, SINGLESTEP) else {}
    outputs, samples, noisy = [], [], []
    for i, timestep in enumerate(timesteps):
        output = torch.randn(sample.shape, generator=inputs)
        sample = scheduler.step(output, timestep, sample, **draws_noise).prev_sample
        outputs.append(output)
        samples.append(sample)
        # Inpainting puts back what is kept.
        if i + 1 < len(timesteps):
            noisy.append(add_noise(image, timesteps[i + 1 : i + 2], noise))
    key = f"{name}.{steps}.{tokens}.{begin}"
    assert torch.cat(samples).isfinite().all(), key
    recorded = {"image": image, "noise": noise, "start": start, "model_output": torch.cat(outputs), "prev_sample": torch.cat(samples)}
    arrays.update({f"{key}.{name}": array for name, array in recorded.items()})
    arrays[f"{key}.noisy"] = torch.cat([*noisy, torch.zeros_like(image)])
    arrays[f"{key}.timesteps"] = torch.as_tensor(scheduler.timesteps).to(torch.float64)
    return {
        **{"name": name, "class": class_name, "steps": steps, "config": config, "rule": rule, "tokens": tokens},
        **{"begin": begin // scheduler.order, "noise_seed": NOISE_SEED if draws_noise else None, "key": key},
    }


def record_all_flow(arrays):
    return [
        record_flow(run, steps, tokens, strength, arrays)
        for run in FLOW
        for steps in FLOW_STEPS
        for tokens in TOKENS[run[3]]
        for strength in ((1, STRENGTH) if steps in (4, 8) and tokens <= 1024 else (1,))
        # diffusers divides by 0 where a single step is to end at a terminal noise level.
        if not ("shift_terminal" in run[2] and steps == 1)
    ]


def record_all(is_further, arrays):
    # diffusers repeats the last noise level of deis_karras, so that the only step goes nowhere; ours goes to the lowest level.
    return [
        record(run, prediction_type, steps, is_further, arrays)
        for run in (FURTHER if is_further else CHOSEN_MOST)
        for prediction_type, counts in (FURTHER_STEPS if is_further else STEPS).items()
        for steps in counts
        if (run[0], steps) != ("deis_karras", 1)
    ]


def main(folder, *names):
    for name in names or ("schedulers", "schedulers-further", "schedulers-flow"):
        arrays = {}
        runs = record_all_flow(arrays) if name == "schedulers-flow" else record_all(name == "schedulers-further", arrays)
        save_file({key: value.contiguous() for key, value in arrays.items()}, f"{folder}/{name}.safetensors")
        with open(f"{folder}/{name}.json", "w") as file:
            file.write(json.dumps(runs, indent=1) + "\n")


main(*sys.argv[1:])
