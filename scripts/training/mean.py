"""mean.py A B SHARE OUT: a decoder whose weights are a mean of those of A and B, with SHARE of B; B was trained on from A."""
import sys, torch
from diffusers import AutoencoderKL
a, b, share, out = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
mean, other = AutoencoderKL.from_pretrained(a), AutoencoderKL.from_pretrained(b).state_dict()
with torch.no_grad():
    for name, p in mean.state_dict().items(): p.lerp_(other[name], share)
mean.save_pretrained(out)
