import { crashPoints, parseCrashPoint, usableCores } from '@app/process';
import { type Config, type CredentialsConfig, type S3Config, workerKinds } from './config';
import {
  aliases,
  databaseUrl,
  devices,
  flag,
  integer,
  type Kind,
  oneOf,
  origins,
  path,
  plainUrl,
  publicUrl,
  redisUrl,
  someOf,
  text,
  url,
} from './kinds';

type Variable<T> = readonly [name: string, kind: Kind<Exclude<T, undefined>>, fallback?: T];

/** One variable for each field. */
export type Variables<T> = { readonly [K in keyof T]-?: Variable<T[K]> };

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const token = text((raw) => /^[\x21-\x7e]{16,}$/.test(raw), 'at least 16 visible ASCII characters');
const crashPoint = text(
  (raw) => parseCrashPoint(raw) !== undefined,
  `one of ${crashPoints.join(', ')}, with :<n> or without`,
);

/** Names that code has which was written for OpenAI's models. */
const usualAliases = ['gpt-image-*=default', 'chatgpt-image-latest=default', 'dall-e-*=default'];

/** The variables behind the fields of `Config`. */
export const variables: Variables<
  Omit<Config, 's3' | 'credentials' | 'lacksCertificate' | 'ownCertificate' | 'publicUrl' | 'modelFallback'>
> = {
  port: ['PORT', integer(0, 65_535), 3000],
  host: ['HOST', text(), '127.0.0.1'],
  dataDir: ['DATA_DIR', text(), '.darkroom'],
  modelsDir: ['MODELS_DIR', text(), 'models'],
  databaseUrl: ['DATABASE_URL', databaseUrl],
  queueBackend: ['QUEUE_BACKEND', oneOf('postgres', 'redis'), 'postgres'],
  redisUrl: ['REDIS_URL', redisUrl],
  storage: ['STORAGE', oneOf('file', 's3'), 'file'],
  modelAliases: ['MODEL_ALIASES', aliases, usualAliases],
  devices: ['DEVICE', devices, 'auto'],
  inferenceThreads: ['INFERENCE_THREADS', integer(1, 1024), usableCores()],
  engineStallSeconds: ['ENGINE_STALL_SECONDS', integer(30, 86_400), 900],
  inferenceMemoryMb: ['INFERENCE_MEMORY_MB', integer(256, 2 ** 24)],
  webhookAllowPrivate: ['WEBHOOK_ALLOW_PRIVATE', flag, false],
  picturesAllowPrivate: ['PICTURES_ALLOW_PRIVATE', flag, false],
  corsOrigins: ['CORS_ORIGINS', origins, []],
  pictureCache: ['PICTURE_CACHE', oneOf('private', 'public'), 'private'],
  pictureUrls: ['PICTURE_URLS', oneOf('service', 'presigned'), 'service'],
  pictureUrlSeconds: ['PICTURE_URL_SECONDS', integer(60, 604_800), 86_400],
  metricsToken: ['METRICS_TOKEN', token],
  rateLimitPerMinute: ['RATE_LIMIT_PER_MINUTE', integer(0, 1_000_000), 600],
  maxQueuedPerKey: ['MAX_QUEUED_PER_KEY', integer(0, 1_000_000), 1000],
  maxConcurrentPerKey: ['MAX_CONCURRENT_PER_KEY', integer(0, 1000), 0],
  maxTrainingsPerKey: ['MAX_TRAININGS_PER_KEY', integer(0, 1000), 1],
  workerKinds: ['WORKER_KINDS', someOf(...workerKinds), workerKinds],
  storageMbPerKey: ['STORAGE_MB_PER_KEY', integer(0, 1_000_000_000), 20_000],
  auditDays: ['AUDIT_DAYS', integer(0, 36_500), 0],
  logLevel: ['LOG_LEVEL', oneOf(...logLevels), 'info'],
  inferenceHealthPort: ['INFERENCE_HEALTH_PORT', integer(0, 65_535), 0],
  credentialsOwn: ['CREDENTIALS_OWN', path],
  promptRules: ['PROMPT_RULES', path],
  moderationUrl: ['MODERATION_URL', plainUrl],
  moderationKey: ['MODERATION_KEY', text()],
  moderationOnError: ['MODERATION_ON_ERROR', oneOf('allow', 'refuse'), 'refuse'],
  hubEndpoint: ['HF_ENDPOINT', url('http:', 'https:'), 'https://huggingface.co'],
  hubToken: ['HF_TOKEN', text()],
};

/** Variables whose default depends on others, and one that only tests set. */
export const dependentVariables: Variables<{ publicUrl?: string; modelFallback?: boolean; crashPoint?: string }> = {
  publicUrl: ['PUBLIC_URL', publicUrl],
  modelFallback: ['MODEL_FALLBACK', flag],
  crashPoint: ['DARKROOM_CRASH_AT', crashPoint],
};

/** The variables behind the fields of `S3Config`, for pictures in S3. */
export const s3Variables: Variables<Partial<S3Config>> = {
  endpoint: ['S3_ENDPOINT', url('http:', 'https:')],
  publicEndpoint: ['S3_PUBLIC_ENDPOINT', url('http:', 'https:')],
  region: ['S3_REGION', text(), 'us-east-1'],
  bucket: ['S3_BUCKET', text()],
  accessKeyId: ['S3_ACCESS_KEY_ID', text()],
  secretAccessKey: ['S3_SECRET_ACCESS_KEY', text()],
  forcePathStyle: ['S3_FORCE_PATH_STYLE', flag],
};

/** The variables behind the fields of `CredentialsConfig`, and whether there are to be any. */
export const credentialsVariables: Variables<
  Partial<Omit<CredentialsConfig, 'isRequired'>> & { mode: 'required' | 'optional' | 'off' }
> = {
  mode: ['CREDENTIALS', oneOf('required', 'optional', 'off'), 'required'],
  certificate: ['CREDENTIALS_CERTIFICATE', text()],
  key: ['CREDENTIALS_KEY', text()],
  signer: ['CREDENTIALS_SIGNER', plainUrl],
  timeStamp: ['CREDENTIALS_TIME_STAMP', plainUrl],
  prompt: ['CREDENTIALS_PROMPT', flag, false],
};
