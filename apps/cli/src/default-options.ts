import { defaultsRange, schedulerNames } from '@app/model-store';
import { InvalidArgumentError, Option } from 'commander';

/** The options for a model's defaults. Each is checked on its own, so that the message names the option. */
export const defaultOptions: readonly Option[] = [
  new Option('--steps <n>', 'steps where a request does not say: 1 to 8 for most distilled models').argParser(
    (text) => {
      const { min, max } = defaultsRange.steps;
      const value = toNumber(text);
      if (Number.isInteger(value) && value >= min && value <= max) return value;
      throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`);
    },
  ),
  new Option('--cfg <n>', 'guidance where a request does not say: 1 for a model that takes none').argParser((text) => {
    const { min, max } = defaultsRange.cfg;
    const value = toNumber(text);
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`);
  }),
  new Option('--scheduler <name>', 'scheduler where a request does not say, such as lcm').choices(schedulerNames),
];

const toNumber = (text: string): number => (text.trim() === '' ? NaN : Number(text));
