"""finish.py DEST: from trained parts in SHAPES_OUT to DEST/models/shapes, DEST/models/lora and DEST/goldens, and a comparison of
the model's graphs with what was recorded. Run train_lora.py before it to have the LoRA's files and goldens."""
import shutil, subprocess, sys
from pathlib import Path
import layout
from common import OUT

dest, goldens = Path(sys.argv[1]), Path(__file__).parents[1] / "goldens"
run = lambda *command: subprocess.run([sys.executable, *command], check=True)
layout.write(dest / "models/shapes")
if (OUT / "lora").exists(): shutil.copytree(OUT / "lora", dest / "models/lora", dirs_exist_ok=True)
run(Path(__file__).with_name("record.py"), dest / "goldens")
run(goldens / "tokens.py", dest / "models/shapes/tokenizer", dest / "goldens/tokens-shapes.json")
run(goldens / "pipelines.py", dest / "models/shapes", dest / "goldens/shapes")
