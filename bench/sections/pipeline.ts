import { jsonOf } from '../child';
import type { Line } from '../pipeline';
import type { Figure, Section } from '../section';
import { figure } from '../section';

const batches = '1,4,8';

export const pipeline: Section = {
  name: 'pipeline',
  title: 'The library’s own loop',
  about:
    'One request of so many pictures by `libs/diffusion` alone, all steps, divided by the time inside the U-Net’s `session.run`: what schedulers, guidance and copies add. ' +
    'With `--python`, also divided by the same loop of diffusers’ scheduler over Python’s onnxruntime.',
  rounds: 5,
  async measure({ model, threads, rounds, python }) {
    const args = ['--model', model, '--threads', String(threads), '--rounds', String(rounds), '--batches', batches];
    const lines = await jsonOf<Line[]>('pipeline.js', [...args, ...(python ? ['--python', python] : [])]);
    const figures = lines.flatMap(({ batch, loopShares, againstPython }): Figure[] => {
      const pictures = batch === 1 ? '1 picture' : `${batch} pictures`;
      return [
        figure(`${pictures}: loop / session.run`, loopShares, { atMost: 1.05 }),
        ...(againstPython ? [figure(`${pictures}: ours / Python`, againstPython, { atMost: 1 })] : []),
      ];
    });
    return { figures };
  },
};
