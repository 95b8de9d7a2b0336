"""train_encoder.py MINUTES VAE OUT: trains, for MINUTES of processor time, the encoder that belongs to the decoder in VAE, on scenes whose fields are known, and writes both to OUT.

The first three levels are set by hand and stay: they hand on the mean of each 8 x 8 pixels and how it changes within them, and constants that fix
the scale of the first norm. The rest learns the fields from that, so a scene is drawn once and shown often. OUT/training.pt is a checkpoint to go on from.
With COMPOSITES=0.5 in the environment half of what is drawn are objects of several parts, and the encoder in VAE is where it begins."""
import math, os, random, sys, time
from pathlib import Path
import torch
from diffusers import AutoencoderKL
from common import EMA, SIZE, half_weights, polar, statistics
import composites
from fields import fields
from scenes import render, sample

BATCH, FRESH, POOL, COMPOSITES = 16, 3, 6000, float(os.environ.get("COMPOSITES", 0)); LR = 1e-3 if COMPOSITES else 2e-3
SHARES = {"square": 0.64, "portrait": 0.18, "landscape": 0.18}
CONSTANT = torch.tensor([3.0, -3.0])
QUARTERS = {"mean": (1, 1, 1, 1), "x": (1, -1, 1, -1), "y": (1, 1, -1, -1), "xy": (1, -1, -1, 1)}        # left top, right top, left bottom, right bottom
HAAR = [("mean", "mean"), ("mean", "x"), ("mean", "y"), ("mean", "xy"), ("x", "mean"), ("y", "mean"), ("x", "x"), ("x", "y"), ("y", "x"), ("y", "y")]      # of 4 x 4 pixels, of four of these


def quarters(kind):
    return torch.tensor(QUARTERS[kind]).view(2, 2) * (0.25 if kind == "mean" else 0.5)


@torch.no_grad()
def set_by_hand(vae):
    mean, std = (v.flatten() for v in statistics()); e, c = vae.encoder, vae.config.latent_channels
    blocks = e.down_blocks[:3]; down = [b.downsamplers[0].conv for b in blocks]; through = [b.resnets[0].conv_shortcut for b in blocks[1:]]
    for module in (e.conv_in, *(b.resnets[0].conv2 for b in blocks), *down, *through, vae.quant_conv):
        for p in module.parameters(): p.zero_()
    for m, n in zip(through, (3, 12)): m.weight[range(n), range(n)] = 1
    for k in range(3):
        e.conv_in.weight[k, k, 1, 1] = 1; down[0].weight[k, k, :2, :2] = 0.25
        for i, kind in enumerate(QUARTERS): down[1].weight[3 * i + k, k, :2, :2] = quarters(kind)
        for i, (fine, kind) in enumerate(HAAR): down[2].weight[3 * i + k, 3 * list(QUARTERS).index(fine) + k, :2, :2] = quarters(kind)
    down[2].bias[30:] = CONSTANT
    for k in range(c): vae.quant_conv.weight[k, k], vae.quant_conv.bias[k], vae.quant_conv.bias[c + k] = 1 / std[k], -mean[k] / std[k], -20     # latents without noise
    e.conv_out.weight[c:], e.conv_out.bias[c:] = 0, 0


@torch.no_grad()
def front(picture):
    """What the levels set by hand make of pictures, (n, 3, h, w), without their constants -> (n, 30, h / 8, w / 8)"""
    split = lambda v, kind: torch.nn.functional.conv2d(v, quarters(kind).expand(3, 1, 2, 2), stride=2, groups=3); a = split(picture, "mean")
    fine = {kind: split(a, kind) for kind in QUARTERS}
    return torch.cat([split(fine[of], kind) for of, kind in HAAR], 1)


def learn(e, x):
    """front -> fields, (n, 22, h / 32, w / 32)"""
    x = torch.cat([x, CONSTANT.view(1, -1, 1, 1).expand(len(x), -1, *x.shape[-2:])], 1)
    for block in e.down_blocks[3:]: x = block(x)
    return e.conv_out(e.conv_act(e.conv_norm_out(e.mid_block(x, None))))[:, :22]


def loss_of(got, x):
    """The decoder cuts distances at zero, so they count most near an outline; colours count where they are seen."""
    near = torch.ones_like(x); near[:, 9:11] += 4 * (x[:, 9:11].abs() < 0.9); near[:, 12] += 1; near[:, 13:16] = 0.05; near[:, 16:] = 0.7
    near[:, 3:9] = (0.02 + (x[:, 9:11] > -0.3).float()).repeat_interleave(3, 1); near[:, 11] = 0.05 + (x[:, 9] > -0.3)
    e = (got - x).abs()
    return ((e + 4 * e * e) * near).mean()


@torch.inference_mode()
def report(name, vae, count):
    """What is left of pictures of 8 bits, in scenes that training does not show."""
    rng, (mean, std), errors = random.Random(99), statistics(), []
    for i in range(count):
        h, w = SIZE[["square", "square", "portrait", "landscape"][i % 4]]; spec = [sample(rng, w / h)[1]]; picture = render(spec, h, w); seen = ((picture + 1) * 127.5).round() / 127.5 - 1
        errors.append([((vae.decode(z).sample.clamp(-1, 1) - picture) ** 2).mean().item() for z in (vae.encode(seen).latent_dist.mode(), (fields(spec, h, w) - mean) / std)[:1 + (count > 12)]])
    print(name, "encoded and decoded" + (", and from exact latents" if count > 12 else ""), *(f"{10 * math.log10(4 * count / sum(e)):.2f} dB, worst {10 * math.log10(4 / max(e)):.1f}" for e in zip(*errors)), flush=True)


@torch.no_grad()
def muon(p, state, lr):
    g = p.grad.flatten(1); state.lerp_(g, 0.06); u = g.lerp(state, 0.94); tall = u.shape[0] > u.shape[1]; u = u.T if tall else u
    X = polar(u / (u.norm() * 1.01 + 1e-9), 5); X = X.T if tall else X
    p.mul_(1 - lr * 0.02).add_((X * (0.2 * max(X.shape) ** 0.5)).reshape(p.shape), alpha=-lr)


def main(minutes, src, out):
    torch.set_num_threads(1); torch.manual_seed(1); rng = random.Random(); out.mkdir(parents=True, exist_ok=True)
    vae = AutoencoderKL.from_pretrained(src).eval(); e = vae.encoder; COMPOSITES or set_by_hand(vae)
    for p in vae.parameters(): p.requires_grad_(False)
    params = [p.requires_grad_(True) for m in (*e.down_blocks[3:], e.mid_block, e.conv_norm_out, e.conv_out) for p in m.parameters()]
    matrices = [p for p in params if p.ndim > 1]; states = [torch.zeros_like(p.flatten(1)) for p in matrices]
    adam, ema, kept = torch.optim.Adam([p for p in params if p.ndim == 1], betas=(0.9, 0.98)), EMA(params, 0.995), out / "training.pt"
    step, spent = 0, 0.0
    if kept.exists():
        held = torch.load(kept); step, spent = held["step"], held["spent"]; adam.load_state_dict(held["adam"]); ema.n = step
        for own, value in zip((*params, *states, *ema.shadow), held["tensors"]): own.data.copy_(value)
    pool = {f: [] for f in SIZE}

    def draw(f, n):
        h, w = SIZE[f]; of_parts = sum(rng.random() < COMPOSITES for _ in range(n)); made = []
        for count, source in ((n - of_parts, None), (of_parts, composites)):
            if not count: continue
            specs = [source.sample(rng, w / h) if source else sample(rng, w / h)[1] for _ in range(count)]
            made += zip(front((source.render if source else render)(specs, h, w)).half(), (source.fields if source else fields)(specs, h, w).half())
        rng.shuffle(made); pool[f] += made; del pool[f][:-int(POOL * SHARES[f])]

    def keep(count=12):
        torch.save({"step": step, "spent": spent, "adam": adam.state_dict(), "tensors": [*(p.detach() for p in params), *states, *ema.shadow]}, kept.with_suffix(".new")); kept.with_suffix(".new").rename(kept)
        e.to(memory_format=torch.contiguous_format); mine = [p.detach().clone() for p in params]; ema.copy_to(); half_weights(vae); report(f"{step} steps, {spent:.0f} s:", vae, count); vae.save_pretrained(out)
        with torch.no_grad():
            for p, value in zip(params, mine): p.copy_(value)
        e.to(memory_format=torch.channels_last)

    e.to(memory_format=torch.channels_last)
    for f in SIZE: draw(f, int(300 * SHARES[f]))
    shown, losses, before = spent, [], time.process_time()
    while spent < minutes * 60:
        lr = LR * min(1, (step + 1) / 50) * (0.02 + 0.98 * min(1, (1 - spent / minutes / 60) / 0.6))
        f = rng.choices(list(SIZE), list(SHARES.values()))[0]; draw(f, FRESH)
        x, target = (torch.stack(v).float() for v in zip(*rng.sample(pool[f], BATCH)))
        x = x + 0.03 * torch.rand(BATCH, 1, 1, 1) ** 3 * torch.randn_like(x)
        with torch.autocast("cpu", torch.bfloat16, enabled=spent < 0.7 * minutes * 60): got = learn(e, x.contiguous(memory_format=torch.channels_last).requires_grad_())
        loss = loss_of(got.float(), target); loss.backward(); losses.append(loss.item())
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        for g in adam.param_groups: g["lr"] = lr
        adam.step()
        for p, s in zip(matrices, states): muon(p, s, lr)
        for p in params: p.grad = None
        step += 1; ema.update(); now = time.process_time(); spent += now - before; before = now
        if step % 50 == 0: print(f"{step} {spent:.0f} s, loss {sum(losses) / len(losses):.4f}", flush=True); losses = []
        if spent - shown > 240: keep(); shown, before = spent, time.process_time()
    keep(48)


if __name__ == "__main__": main(float(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
