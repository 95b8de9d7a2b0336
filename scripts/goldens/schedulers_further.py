"""Records runs of diffusers' schedulers, as test/golden/schedulers.spec.ts reads them: every class and parameter that
schedulers.py leaves out. A new scheduler is listed here.

python scripts/goldens/schedulers_further.py test/golden/data/schedulers-further
"""

import json
import sys

import diffusers
import numpy as np
import torch
from safetensors.numpy import save_file

TRAINED = {"num_train_timesteps": 1000, "beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "steps_offset": 1}
MULTISTEP, SINGLESTEP, DEIS = "DPMSolverMultistepScheduler", "DPMSolverSinglestepScheduler", "DEISMultistepScheduler"
KDPM2, KDPM2_A, SDE = "KDPM2DiscreteScheduler", "KDPM2AncestralDiscreteScheduler", "DPMSolverSDEScheduler"
NOISE_SEED = 99
SHAPE = (1, 1, 4, 4)

# Name, class, configuration beyond TRAINED; `eta` is an argument of step.
RUNS = [
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
STEPS = [("epsilon", 1), ("epsilon", 2), ("epsilon", 6), ("epsilon", 16), ("v_prediction", 7)]


def record(name, class_name, extra, prediction_type, steps, arrays):
    config = {key: value for key, value in {**TRAINED, **extra}.items() if key != "eta"}
    cls = getattr(diffusers, class_name)
    scheduler = cls.from_config({**config, "prediction_type": prediction_type})
    scheduler.set_timesteps(steps)
    generator = torch.Generator().manual_seed(NOISE_SEED)
    inputs = torch.Generator().manual_seed(steps)
    arguments = cls.step.__code__.co_varnames
    options = {"generator": generator} if "generator" in arguments else {}
    if "eta" in extra:
        options["eta"] = extra["eta"]
    key = f"{name}.{prediction_type}.{steps}"
    sample = torch.randn(SHAPE, generator=inputs) * scheduler.init_noise_sigma
    arrays[f"{key}.start"] = sample[0].numpy()
    outputs, samples = [], []
    for timestep in scheduler.timesteps:
        scheduler.scale_model_input(sample, timestep)
        output = torch.randn(SHAPE, generator=inputs)
        sample = scheduler.step(output, timestep, sample, **options).prev_sample.to(torch.float32)
        outputs.append(output[0].numpy())
        samples.append(sample[0].numpy())
    assert np.isfinite(samples).all(), key
    arrays[f"{key}.model_output"] = np.stack(outputs)
    arrays[f"{key}.prev_sample"] = np.stack(samples)
    arrays[f"{key}.timesteps"] = np.asarray(scheduler.timesteps, dtype=np.float64)
    return {
        "name": name,
        "class": class_name,
        "prediction_type": prediction_type,
        "steps": steps,
        "config": config,
        "eta": extra.get("eta"),
        "init_noise_sigma": float(scheduler.init_noise_sigma),
        "noise_seed": NOISE_SEED,
        "key": key,
    }


def main(target):
    arrays, runs = {}, []
    for run in RUNS:
        for prediction_type, steps in STEPS:
            # diffusers repeats the last noise level, so that the only step goes nowhere; ours goes to the lowest level.
            if run[0] == "deis_karras" and steps == 1:
                continue
            runs.append(record(*run, prediction_type, steps, arrays))
    save_file({key: np.ascontiguousarray(value) for key, value in arrays.items()}, f"{target}.safetensors")
    with open(f"{target}.json", "w") as file:
        json.dump(runs, file, indent=1)
        file.write("\n")


main(sys.argv[1])
