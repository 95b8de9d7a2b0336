import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { crashPoints, parseCrashPoint } from '@app/process';

/** Settings of an S3-compatible store. */
export interface S3Config {
  endpoint?: string;
  region: string;
  bucket: string;
  accessKeyId: string;
  secretAccessKey: string;
  forcePathStyle: boolean;
}

/** What the environment says, read once and checked as a whole. Paths are absolute. */
export interface Config {
  port: number;
  host: string;
  /** Base of every URL that leaves the service, without a trailing slash. */
  publicUrl: string;
  dataDir: string;
  modelsDir: string;
  /** Undefined: the embedded PostgreSQL of `npm start`. */
  databaseUrl?: string;
  queueBackend: 'postgres' | 'redis';
  redisUrl?: string;
  storage: 'file' | 's3';
  s3?: S3Config;
  /** `auto`, or the devices to draw on, one engine thread each. */
  devices: 'auto' | ('cpu' | `cuda:${number}`)[];
  inferenceThreads: number;
  /** Seconds without a word from an engine that draws or loads a model, after which the worker ends so as to be started anew. */
  engineStallSeconds: number;
  /** Megabytes that models and drawing may take on each device; undefined: half of the machine's memory, most of a GPU's. */
  inferenceMemoryMb?: number;
  /** Megabytes of disk that models with a Fine-Tune's weights merged in may take; those not used for longest go first. */
  mergedCacheMb: number;
  /** Whether the bundled demonstration model may stand in for one that is not installed. */
  modelFallback: boolean;
  webhookAllowPrivate: boolean;
  /** Whoever has it may read `/metrics` from anywhere; without it only this machine may. */
  metricsToken?: string;
  /** Requests that one key may make in a minute; of this and the two below, 0 is no limit, and a key may have its own. */
  rateLimitPerMinute: number;
  /** Generations and Prompts of one key that may wait to be drawn. */
  maxQueuedPerKey: number;
  /** As many may be drawn at once. */
  maxConcurrentPerKey: number;
  /** Megabytes (of 10^6 bytes) of one key's pictures and weights, uploads in progress among them; 0 is no limit here too. */
  storageMbPerKey: number;
  logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';
  /** Port of the worker's health endpoint; 0 picks a free one. */
  inferenceHealthPort: number;
  hubEndpoint: string;
  hubToken?: string;
}

/** One or more variables are bad; the message names each with what is accepted. */
export class ConfigError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(`The environment is not usable:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/**
 * Reads and checks every variable the service knows.
 * @throws ConfigError listing every bad variable, not only the first.
 */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  const text = (name: string): string | undefined => env[name]?.trim() || undefined;
  const integer = (name: string, fallback: number, min: number, max: number): number => {
    const raw = text(name);
    if (raw === undefined) return fallback;
    const value = Number(raw);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    problems.push(`${name} must be an integer from ${min} to ${max}, got "${raw}".`);
    return fallback;
  };
  const oneOf = <T extends string>(name: string, fallback: T, values: readonly T[]): T => {
    const raw = text(name);
    if (raw === undefined) return fallback;
    const found = values.find((value) => value === raw);
    if (!found) problems.push(`${name} must be one of ${values.join(', ')}, got "${raw}".`);
    return found ?? fallback;
  };
  const flag = (name: string, fallback: boolean): boolean => {
    const raw = text(name)?.toLowerCase();
    if (raw === undefined) return fallback;
    if (['1', 'true', 'on', 'yes'].includes(raw)) return true;
    if (['0', 'false', 'off', 'no'].includes(raw)) return false;
    problems.push(`${name} must be true or false, got "${raw}".`);
    return fallback;
  };
  const url = (name: string, protocols: readonly string[]): string | undefined => {
    const raw = text(name);
    if (raw === undefined) return undefined;
    if (URL.canParse(raw) && protocols.includes(new URL(raw).protocol)) return raw.replace(/(?<!\/)\/+$/, '');
    problems.push(`${name} must be a ${protocols.map((protocol) => `${protocol}//`).join(' or ')} URL.`);
    return undefined;
  };
  const devices = (): Config['devices'] => {
    const raw = text('DEVICE') ?? 'auto';
    if (raw === 'auto') return 'auto';
    const names = raw.split(',').map((name) => name.trim());
    if (names.every((name) => name === 'cpu' || /^cuda:\d+$/.test(name)) && new Set(names).size === names.length)
      return names as ('cpu' | `cuda:${number}`)[];
    problems.push(`DEVICE must be auto, cpu, or cuda:<n> (several with commas, each once), got "${raw}".`);
    return 'auto';
  };

  const metricsToken = text('METRICS_TOKEN');
  if (metricsToken !== undefined && !/^[\x21-\x7e]{16,}$/.test(metricsToken))
    problems.push('METRICS_TOKEN must be at least 16 visible ASCII characters.');

  const crashAt = text('DARKROOM_CRASH_AT');
  if (crashAt !== undefined && !parseCrashPoint(crashAt))
    problems.push(`DARKROOM_CRASH_AT must be one of ${crashPoints.join(', ')}, with :<n> or without.`);

  const port = integer('PORT', 3000, 0, 65535);
  const databaseUrl = url('DATABASE_URL', ['postgres:', 'postgresql:']);
  const queueBackend = oneOf('QUEUE_BACKEND', 'postgres', ['postgres', 'redis']);
  const redisUrl = url('REDIS_URL', ['redis:', 'rediss:']);
  if (queueBackend === 'redis' && !redisUrl) problems.push('REDIS_URL is needed when QUEUE_BACKEND is redis.');
  const storage = oneOf('STORAGE', 'file', ['file', 's3']);
  const s3 = storage === 's3' ? readS3(text, url, flag, problems) : undefined;
  const config: Config = {
    port,
    host: text('HOST') ?? '127.0.0.1',
    publicUrl: url('PUBLIC_URL', ['http:', 'https:']) ?? `http://localhost:${port}`,
    dataDir: resolve(text('DATA_DIR') ?? '.darkroom'),
    modelsDir: resolve(text('MODELS_DIR') ?? 'models'),
    queueBackend,
    storage,
    devices: devices(),
    inferenceThreads: integer('INFERENCE_THREADS', availableParallelism(), 1, 1024),
    engineStallSeconds: integer('ENGINE_STALL_SECONDS', 900, 1, 86_400),
    mergedCacheMb: integer('MERGED_CACHE_MB', 20_000, 0, 2 ** 31),
    modelFallback: flag('MODEL_FALLBACK', databaseUrl === undefined),
    webhookAllowPrivate: flag('WEBHOOK_ALLOW_PRIVATE', false),
    rateLimitPerMinute: integer('RATE_LIMIT_PER_MINUTE', 600, 0, 1_000_000),
    maxQueuedPerKey: integer('MAX_QUEUED_PER_KEY', 1000, 0, 1_000_000),
    maxConcurrentPerKey: integer('MAX_CONCURRENT_PER_KEY', 0, 0, 1000),
    storageMbPerKey: integer('STORAGE_MB_PER_KEY', 20_000, 0, 1_000_000_000),
    logLevel: oneOf('LOG_LEVEL', 'info', logLevels),
    inferenceHealthPort: integer('INFERENCE_HEALTH_PORT', 0, 0, 65535),
    hubEndpoint: url('HF_ENDPOINT', ['http:', 'https:']) ?? 'https://huggingface.co',
    ...(text('INFERENCE_MEMORY_MB') && { inferenceMemoryMb: integer('INFERENCE_MEMORY_MB', 256, 256, 2 ** 24) }),
    ...(metricsToken && { metricsToken }),
    ...(databaseUrl && { databaseUrl }),
    ...(redisUrl && { redisUrl }),
    ...(s3 && { s3 }),
    ...(text('HF_TOKEN') && { hubToken: text('HF_TOKEN') }),
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

function readS3(
  text: (name: string) => string | undefined,
  url: (name: string, protocols: readonly string[]) => string | undefined,
  flag: (name: string, fallback: boolean) => boolean,
  problems: string[],
): S3Config {
  const required = (name: string): string => {
    const value = text(name);
    if (!value) problems.push(`${name} is needed when STORAGE is s3.`);
    return value ?? '';
  };
  const endpoint = url('S3_ENDPOINT', ['http:', 'https:']);
  return {
    ...(endpoint && { endpoint }),
    region: text('S3_REGION') ?? 'us-east-1',
    bucket: required('S3_BUCKET'),
    accessKeyId: required('S3_ACCESS_KEY_ID'),
    secretAccessKey: required('S3_SECRET_ACCESS_KEY'),
    forcePathStyle: flag('S3_FORCE_PATH_STYLE', endpoint !== undefined),
  };
}
