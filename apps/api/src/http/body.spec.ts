import { InvalidError, limits } from '@app/domain';
import {
  ApplyStyleDto,
  CreateCollectionDto,
  CreateFinetuneDto,
  CreateGenerationDto,
  CreatePromptDto,
  CreateStyleDto,
} from '@app/domain/http';
import type { PipeTransform } from '@nestjs/common';
import * as fc from 'fast-check';
import { FinetuneOrGenerationPipe } from '../finetunes/finetune-body';
import { BodyPipe } from './body';

const pipes: [string, PipeTransform][] = [
  ['a Generation', new BodyPipe(CreateGenerationDto)],
  ['a Fine-Tune', new BodyPipe(CreateFinetuneDto)],
  ['a Fine-Tune or a Generation', new FinetuneOrGenerationPipe()],
  ['a Collection', new BodyPipe(CreateCollectionDto)],
  ['Prompts', new BodyPipe(CreatePromptDto, { array: true })],
  ['Styles to add', new BodyPipe(CreateStyleDto, { array: true })],
  ['Styles to apply', new BodyPipe(ApplyStyleDto, { array: true })],
];

function refusalOf(pipe: PipeTransform, body: unknown): InvalidError | undefined {
  try {
    pipe.transform(body, { type: 'body' });
    return undefined;
  } catch (error) {
    if (error instanceof InvalidError) return error;
    throw error;
  }
}

describe(BodyPipe.name, () => {
  const [[, generation]] = pipes;

  it('has only what was sent in its DTO', () => {
    const body = { prompt: 'a robot', metadata: null, aspect_ratio: ['portrait'] };
    const dto: unknown = generation.transform(body, { type: 'body' });
    expect(dto).toBeInstanceOf(CreateGenerationDto);
    expect({ ...(dto as object) }).toEqual({ prompt: 'a robot', aspect_ratio: 'portrait' });
  });

  it('tells twenty problems and how many more there are, in a short answer', () => {
    const body = Object.fromEntries(Array.from({ length: 90_000 }, (_, i) => [`field${i}`, 1]));
    const refusal = refusalOf(generation, body)!;
    expect(refusal).toMatchObject({ code: 'PromptMissing', message: '"/prompt" is required (one of 90001 problems).' });
    expect([refusal.fields?.length, refusal.fields?.at(-1)]).toEqual([21, { message: 'and 89981 more' }]);
  });

  it('repeats no more of a key than it is known by', () => {
    const refusal = refusalOf(generation, { prompt: 'x', ['k'.repeat(490_000)]: Array(250_000).fill(0) });
    expect(refusal?.fields?.map(({ pointer }) => pointer)).toEqual([`/${'k'.repeat(100)}…`]);
  });
});

/** Values of this many bytes of JSON, each of another kind. */
const fillers: Record<string, (bytes: number) => string> = {
  'a long string': (bytes) => `"${'x'.repeat(bytes)}"`,
  'surrogate pairs': (bytes) => `"${'𝒳'.repeat(bytes / 4)}"`,
  zeros: (bytes) =>
    `[${Array(Math.floor(bytes / 2))
      .fill('0')
      .join()}]`,
  objects: (bytes) =>
    `[${Array(Math.floor(bytes / 3))
      .fill('{}')
      .join()}]`,
  arrays: (bytes) =>
    `[${Array(Math.floor(bytes / 3))
      .fill('[]')
      .join()}]`,
  'long words': (bytes) =>
    `[${Array(Math.floor(bytes / 1003))
      .fill(`"${'x'.repeat(1000)}"`)
      .join()}]`,
  'levels of arrays': (bytes) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2),
  'levels of objects': (bytes) => `${'{"a":'.repeat(bytes / 6)}0${'}'.repeat(bytes / 6)}`,
  'many keys': (bytes) => `{${Array.from({ length: bytes / 11 }, (_, i) => `"k${i}":0`).join()}}`,
  'one key many times': (bytes) =>
    `{${Array(Math.floor(bytes / 6))
      .fill('"a":0')
      .join()}}`,
  'a long key': (bytes) =>
    `{"${'k'.repeat(bytes / 2)}":[${Array(Math.floor(bytes / 4))
      .fill('0')
      .join()}]}`,
  'long keys within one another': (bytes) =>
    `${`{"${'k'.repeat(bytes / 70)}":`.repeat(50)}[${Array(Math.floor(bytes / 12))
      .fill('0')
      .join()}]${'}'.repeat(50)}`,
  'keys of the prototype': (bytes) =>
    `{${Array(Math.floor(bytes / 17))
      .fill('"__proto__":{}')
      .join()}}`,
};

const fields = [
  ...['prompt', 'negative_prompt', 'metadata', 'styles', 'name', 'title', 'token', 'model', 'webhook', 'images_url'],
  ...['aspect_ratio', 'seed', 'cfg', 'id', 'unknown'],
];

interface Recipe {
  filler: string;
  field: string;
  elements: number;
  place: 'whole' | 'field' | 'elements' | 'elements of styles';
}

const recipes: fc.Arbitrary<Recipe> = fc.record({
  filler: fc.constantFrom(...Object.keys(fillers)),
  field: fc.constantFrom(...fields),
  elements: fc.constantFrom(1, 2, 60, 100, 30_000),
  place: fc.constantFrom('whole', 'field', 'elements', 'elements of styles'),
});

function bodyOf({ filler, field, elements, place }: Recipe): string {
  const room = limits.bodyBytes - 1000;
  if (place === 'whole') return fillers[filler](room);
  if (place === 'field') return `{"prompt":"x","name":"x","${field}":${fillers[filler](room)}}`;
  const element = `{"id":"x","${field}":${fillers[filler](Math.max(12, Math.floor(room / elements) - 40))}}`;
  const count = Math.max(1, Math.min(elements, Math.floor(room / (element.length + 1))));
  const array = `[${Array(count).fill(element).join()}]`;
  return place === 'elements' ? array : `{"name":"x","styles":${array}}`;
}

/** Counts every value and key that is read. */
function countedBody(body: unknown): { body: unknown; reads: () => number } {
  let reads = 0;
  const proxies = new WeakMap<object, object>();
  const counted = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    if (!proxies.has(value)) proxies.set(value, new Proxy(value, handler));
    return proxies.get(value);
  };
  const handler: ProxyHandler<object> = {
    get: (target, key) => (reads++, counted(Reflect.get(target, key))),
    has: (target, key) => (reads++, Reflect.has(target, key)),
    getOwnPropertyDescriptor: (target, key) => (reads++, Reflect.getOwnPropertyDescriptor(target, key)),
    ownKeys: (target) => {
      const keys = Reflect.ownKeys(target);
      reads += keys.length;
      return keys;
    },
  };
  return { body: counted(body), reads: () => reads };
}

describe('A body of the largest size', () => {
  /** Each took seconds before sizes were checked first. */
  const knownAttacks: [Recipe][] = [
    [{ filler: 'a long key', field: 'metadata', elements: 1, place: 'field' }],
    [{ filler: 'objects', field: 'styles', elements: 1, place: 'field' }],
    [{ filler: 'many keys', field: 'metadata', elements: 1, place: 'whole' }],
    [{ filler: 'arrays', field: 'metadata', elements: 60, place: 'elements' }],
  ];

  it('is read in proportion to its size and has a short answer, whatever it is, and whatever it should be', () => {
    fc.assert(
      fc.property(recipes, (recipe) => {
        const json = bodyOf(recipe);
        expect(json.length).toBeLessThanOrEqual(limits.bodyBytes);
        const parsed: unknown = JSON.parse(json);
        for (const [name, pipe] of pipes) {
          const { body, reads } = countedBody(parsed);
          const refusal = refusalOf(pipe, body);
          const isShort = JSON.stringify(refusal?.fields ?? []).length < 20_000;
          expect({ name, isCheap: reads() <= 2 * json.length, isShort }).toEqual({
            name,
            isCheap: true,
            isShort: true,
          });
        }
      }),
      { numRuns: 16, examples: knownAttacks },
    );
  });
});
