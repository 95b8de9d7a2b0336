import type { Row } from '../../row';
import { bursts } from './bursts';
import { hyphens } from './hyphens';
import { lists } from './lists';
import { longKeys } from './long-keys';
import { longPrompts } from './long-prompts';
import { manyFields } from './many-fields';
import { pipelining } from './pipelining';
import { randomShapes } from './random-shapes';
import { sandbox } from './sandbox';
import { streams } from './streams';
import { uploadsThatTrickle } from './uploads';
import { weights } from './weights';

/** One key is hostile, and another must not notice. */
export const neighbours: readonly Row[] = [
  hyphens,
  longKeys,
  manyFields,
  bursts,
  lists,
  sandbox,
  longPrompts,
  weights,
  streams,
  pipelining,
  uploadsThatTrickle,
  randomShapes,
];
