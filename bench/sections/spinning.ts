import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { defaultSpinUs } from '@app/diffusion';
import { BareGraphs } from '../bare-graphs';
import { figure, interleave, ratios, type Section } from '../section';

/** Calls of one measurement. */
const calls = 10;
/** Time of one guided picture. */
const rows = 2;
const restMs = 20;

export const spinning: Section = {
  name: 'spinning',
  title: 'Beside other programs',
  about:
    'Time of a bare `session.run` of the U-Net with 2 rows whose idle threads spin for as long as ours do, divided by its time with others: those that spin for as long as ONNX Runtime lets them, and those that sleep at once. On idle cores, and beside as many busy processes as a call has threads.',
  rounds: 15,
  async measure(options) {
    const [ours, longer, sleeping] = await Promise.all(
      [defaultSpinUs, undefined, 0].map((spinUs) => BareGraphs.load(options, spinUs)),
    );
    const some = async (graphs: BareGraphs): Promise<number> => {
      // The threads of the other sides have gone to sleep by now.
      await delay(restMs);
      await graphs.unetMs(rows);
      let ms = 0;
      for (let i = 0; i < calls; i++) ms += await graphs.unetMs(rows);
      return ms;
    };
    const sides = { ours: () => some(ours), longer: () => some(longer), sleeping: () => some(sleeping) };
    const idle = await interleave(sides, options.rounds);
    const others = Array.from({ length: options.threads }, startBusyProcess);
    const beside = await interleave(sides, options.rounds).finally(() => others.forEach((each) => each.kill()));
    for (const graphs of [ours, longer, sleeping]) await graphs.release();
    return [
      figure("idle cores: ours / ONNX Runtime's", ratios(idle.ours, idle.longer), { atMost: 1.05 }),
      figure('idle cores: ours / sleeping', ratios(idle.ours, idle.sleeping), { atMost: 1 }),
      figure("busy cores: ours / ONNX Runtime's", ratios(beside.ours, beside.longer), { atMost: 1 }),
      figure('busy cores: ours / sleeping', ratios(beside.ours, beside.sleeping)),
    ];
  },
};

function startBusyProcess(): ChildProcess {
  return spawn(process.execPath, ['--eval', 'for (;;);'], { stdio: 'ignore' });
}
