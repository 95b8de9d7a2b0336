import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '@app/config';
import {
  defaults,
  highResolutionLongEdge,
  keyBounds,
  limits,
  maxProblemsListed,
  sandboxLimits,
  sizeOf,
} from '@app/domain';
import { maxReaders } from '../../apps/api/src/docs/serve-docs';
import { uploadProgress } from '../../apps/api/src/finetunes/receive-file';
import { bodyTimeoutMs } from '../../apps/api/src/http/json-body';
import { maxContainers, maxFields, maxMembers } from '../../apps/api/src/http/json-scan';
import { minTakenBytes, stallMs } from '../../apps/api/src/http/open-connections';
import { lightBytes } from '../../apps/api/src/http/weighs';
import { replayHours } from '../../apps/api/src/http/idempotency.interceptor';
import { longRequestsPerKey } from '../../apps/api/src/http/long-requests';
import { servedPerKey, waitingPerKey } from '../../apps/api/src/http/request-turns';
import { OpenaiAnswer } from '../../apps/api/src/generations/openai-answer';
import { uploadsPerKey } from '../../apps/api/src/files/uploads.service';
import { longestWaitSeconds } from '../../apps/api/src/generations/preferred-wait';
import { hostConcurrency, ownerConcurrency } from '../../apps/api/src/webhooks/receiver-gate';
import { maxRank } from '../../libs/diffusion/src/lora/lora-fit';
import { maxAttempts } from '../../apps/api/src/webhooks/retry-schedule';
import { receiverTimeoutMs } from '../../apps/api/src/webhooks/webhook-sender';

const page = readFileSync(join(__dirname, '..', '..', 'docs', 'limits.md'), 'utf8');
const config = loadConfig({});
const seconds = (ms: number) => ms / 1000;
const kibibytes = (bytes: number) => bytes / 1024;
const { square, portrait, landscape } = sizeOf;

/** The numbers of each row, in order, from the code. */
const expected: Readonly<Record<string, readonly number[]>> = {
  'A JSON body': [limits.bodyBytes],
  'Time in which it must arrive': [seconds(bodyTimeoutMs)],
  'Objects and arrays in it': [maxContainers],
  'Fields in it; in one object': [maxFields, maxMembers],
  'Prompts, or Styles, in one request': [1, limits.arrayLength],
  'Styles with which a Collection is created': [0, limits.arrayLength],
  'Prompts that one request makes of Styles': [limits.appliedPrompts],
  'Metadata of all these Prompts together': [limits.appliedMetadata],
  'Records on a page of a list (`limit`)': [limits.page.min, limits.page.max],
  'Problems that an error lists': [maxProblemsListed],
  // test/integration/idempotency.spec.ts sends one of 256 characters.
  'An `Idempotency-Key`': [1, 255],
  'How long its reply is kept': [replayHours],
  'How long the old token of a rotated key is accepted': [keyBounds.graceHours.default],
  '`Prefer: wait`': [1, longestWaitSeconds],
  'How long `POST /v1/images/generations` waits for its pictures': [OpenaiAnswer.waitSeconds],
  '`prompt`, `negative_prompt`': [limits.promptLength],
  // 75 is CLIP's window of 77 without its first and last token.
  'The same, in tokens': [limits.promptChunks, 75],
  '`name`, `title`': [limits.nameLength],
  '`token` of a Fine-Tune': [limits.tokenLength],
  '`webhook`': [limits.webhookLength],
  '`metadata`': [limits.metadataBytes, limits.metadataDepth],
  '`cfg`': [limits.cfg.min, limits.cfg.max, defaults.cfg],
  '`steps`': [limits.steps.min, limits.steps.max, defaults.steps],
  '`seed`': [0, limits.seed],
  '`num_generations`': [limits.numGenerations.min, limits.numGenerations.max],
  '`square`, `portrait`, `landscape`': [square, portrait, landscape].flatMap(({ width, height }) => [width, height]),
  'The long edge with `high_resolution`': [highResolutionLongEdge],
  '`images_url`': [limits.trainingImages.min, limits.trainingImages.max],
  '`scale` of weights': [limits.weightsScale.min, limits.weightsScale.max],
  '`metadata.sandbox.delay_ms`': [0, sandboxLimits.delayMs],
  '`metadata.sandbox.fail`': [sandboxLimits.failLength],
  Requests: [config.rateLimitPerMinute],
  'Generations and Prompts that wait': [config.maxQueuedPerKey],
  'Generations and Prompts drawn at a time': [config.maxConcurrentPerKey],
  'Pictures and weights that are stored': [config.storageMbPerKey],
  'Small requests that are served: one record, a status, a body of at most 16 KiB': [
    servedPerKey.light,
    waitingPerKey.light,
  ],
  'Other requests that are served': [servedPerKey.heavy, waitingPerKey.heavy],
  'Event streams': [longRequestsPerKey['event stream']],
  'Complete lists that are sent': [longRequestsPerKey['complete list']],
  'Answers that wait for pictures (`Prefer: wait`)': [longRequestsPerKey['waiting answer']],
  'Uploads of weights': [uploadsPerKey],
  'Weights of a Fine-Tune': [limits.weightsBytes, 1],
  'Rank of a layer of a LoRA': [maxRank],
  'The progress of an upload': [kibibytes(uploadProgress.bytes), seconds(uploadProgress.windowMs)],
  'What a reader of an answer takes': [kibibytes(minTakenBytes), seconds(stallMs)],
  'Time in which a receiver answers': [seconds(receiverTimeoutMs)],
  'Attempts of a delivery': [maxAttempts],
  'Attempts at a time of one key for a host': [hostConcurrency],
  'Attempts at a time of one key': [ownerConcurrency],
  'Attempts that the log of a delivery shows': [limits.shownAttempts],
};

const numbersIn = (text: string): number[] =>
  (text.match(/\d[\d,]*(?:\.\d+)?/g) ?? []).map((number) => Number(number.replaceAll(',', '')));

const rows = page
  .split('\n')
  .filter((line) => /^\| (?!What\s+\||-)/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()));

describe('docs/limits.md', () => {
  it('has a row for each limit, and no others', () => {
    expect(rows.map(([, what]) => what)).toEqual(Object.keys(expected));
    expect(kibibytes(lightBytes)).toBe(16);
  });

  it.each(rows.map(([, what, ...cells]) => [what, cells.join(' ')] as const))('has the number of: %s', (what, text) => {
    // What is in backquotes is a name, and 4xx with the name of an error is a status.
    const plain = text.replace(/`[^`]*`/g, '').replace(/\b4(?:22|29)\b/g, '');
    expect(numbersIn(plain)).toEqual(expected[what]);
  });
});

interface Operation {
  operationId: string;
  description: string;
  parameters?: { name: string; description: string }[];
}

const document = JSON.parse(readFileSync(join(__dirname, '..', '..', 'openapi.json'), 'utf8')) as {
  info: { description: string };
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, { post: Operation }>;
};

/** The numbers of the table in the document, by what it bounds. */
const documented: Readonly<Record<string, readonly number[]>> = {
  'A JSON body': [limits.bodyBytes, seconds(bodyTimeoutMs), maxContainers, maxFields, maxMembers],
  'A prompt': [limits.promptLength, limits.promptChunks, 75],
  'An array of a request': [limits.arrayLength],
  '`metadata`': [kibibytes(limits.metadataBytes), limits.metadataDepth, limits.appliedMetadata],
  'Prompts that one request makes of Styles': [limits.appliedPrompts],
  Weights: [
    limits.weightsBytes / 1024 ** 3,
    uploadsPerKey,
    kibibytes(uploadProgress.bytes),
    seconds(uploadProgress.windowMs),
  ],
  'A reader of an answer': [kibibytes(minTakenBytes), seconds(stallMs)],
  'Requests of a key that are served at a time, at each api process': [
    servedPerKey.light,
    servedPerKey.heavy,
    waitingPerKey.light,
    waitingPerKey.heavy,
  ],
  'Event streams of a key, at each api process': [longRequestsPerKey['event stream']],
  'Answers of a key that wait for pictures, at each api process': [longRequestsPerKey['waiting answer']],
  'Complete lists of a key that are sent at a time': [longRequestsPerKey['complete list']],
  'Readers of these pages': [maxReaders],
  "A sandbox key's `metadata.sandbox`": [0, sandboxLimits.delayMs, sandboxLimits.failLength],
};

describe('openapi.json', () => {
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  const operation = (id: string) => operations.find(({ operationId }) => operationId === id);
  const table = document.info.description
    .split('\n')
    .filter((line) => /^\| (?!What \||-)/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()));

  it('has the numbers of its table', () => {
    const numbers = table.map(([, what, text]) => [what, numbersIn(text.replace('four', '4'))]);
    expect(Object.fromEntries(numbers)).toEqual(documented);
  });

  it('has the numbers of its sentences', () => {
    const prefer = operations
      .flatMap(({ parameters = [] }) => parameters)
      .filter(({ name }) => name === 'Prefer')
      .map(({ description }) => numbersIn(description));
    expect(prefer.length).toBeGreaterThan(0);
    for (const numbers of prefer)
      expect(numbers).toEqual([1, longestWaitSeconds, longestWaitSeconds, longRequestsPerKey['waiting answer']]);
    expect(operation('createImages')?.description).toContain(
      `A key may have ${longRequestsPerKey['waiting answer']} such requests`,
    );
    const streams = operations.filter(({ description }) => description.startsWith('Server-sent events'));
    expect(streams.length).toBeGreaterThan(0);
    for (const { description } of streams)
      expect(description).toContain(`A key may have ${longRequestsPerKey['event stream']} streams open`);
    expect(maxAttempts).toBe(10);
    for (const { post } of Object.values(document.webhooks)) {
      expect(post.description).toContain(`within ${seconds(receiverTimeoutMs)} s`);
      expect(post.description).toContain('ten times in all');
    }
  });
});
