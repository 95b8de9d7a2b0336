import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cures, ModelFolderError, resultsOf } from './errors';

describe(resultsOf.name, () => {
  const refuse = (file: string) => (): never => {
    throw new ModelFolderError(file, 'is missing', cures.installAgain);
  };

  it('tells each fault once, also those of a step that has steps of its own', async () => {
    const inner = () => resultsOf({ b: refuse('b'), c: refuse('c') });
    for (const [steps, files] of [
      [{ a: refuse('a'), inner }, 'abc'],
      [{ inner, d: refuse('d') }, 'bcd'],
    ] as const) {
      const error: unknown = await resultsOf<object>(steps).catch((thrown: unknown) => thrown);
      const { file, others, message } = error as ModelFolderError;
      expect([file, ...others.map((other) => other.file)].join('')).toBe(files);
      expect(message).toBe([...files].map((name) => `${name} is missing. ${cures.installAgain}`).join('\n'));
    }
  });
});

describe('what to do about a model that is refused', () => {
  const page = readFileSync(join(__dirname, '../../../docs/models.md'), 'utf8');

  it.each(Object.values(cures))('is explained in docs/models.md: %s', (cure) => expect(page).toContain(`\`${cure}\``));
});
