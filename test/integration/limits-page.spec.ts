import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '@app/config';
import { defaults, highResolutionLongEdge, limits, maxProblemsListed, sandboxLimits, sizeOf } from '@app/domain';
import { uploadProgress } from '../../apps/api/src/finetunes/receive-file';
import { bodyTimeoutMs } from '../../apps/api/src/http/json-body';
import { maxContainers, maxFields, maxMembers } from '../../apps/api/src/http/json-scan';
import { leastTakenBytes, stallMs } from '../../apps/api/src/http/open-connections';
import { lightBytes } from '../../apps/api/src/http/request.interceptor';
import { replayHours } from '../../apps/api/src/idempotency/idempotency.interceptor';
import { defaultGraceHours } from '../../apps/api/src/keys/keys.service';
import { longRequestsPerKey } from '../../apps/api/src/long-requests/long-requests';
import { servedPerKey, waitingPerKey } from '../../apps/api/src/long-requests/request-turns';
import { OpenaiImages } from '../../apps/api/src/openai/openai-images';
import { uploadsPerKey } from '../../apps/api/src/storage-use/uploads.service';
import { longestWaitSeconds } from '../../apps/api/src/waiting/preferred-wait';
import { hostConcurrency } from '../../apps/api/src/webhooks/receiver-gate';
import { maxTries } from '../../apps/api/src/webhooks/retry-schedule';
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
  'How long the old token of a rotated key is accepted': [defaultGraceHours],
  '`Prefer: wait`': [1, longestWaitSeconds],
  'How long `POST /v1/images/generations` waits for its pictures': [OpenaiImages.waitSeconds],
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
  'The progress of an upload': [kibibytes(uploadProgress.bytes), seconds(uploadProgress.windowMs)],
  'What a reader of an answer takes': [kibibytes(leastTakenBytes), seconds(stallMs)],
  'Time in which a receiver answers': [seconds(receiverTimeoutMs)],
  'Attempts of a delivery': [maxTries],
  'Attempts at a time for one host': [hostConcurrency],
  'Attempts that the log of a delivery shows': [limits.shownAttempts],
};

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
    const numbers = (plain.match(/\d[\d,]*(?:\.\d+)?/g) ?? []).map((number) => Number(number.replaceAll(',', '')));
    expect(numbers).toEqual(expected[what]);
  });
});
