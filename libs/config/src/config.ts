import type { LogLevel } from '@app/observability';

export const workerKinds = ['drawing', 'training'] as const;
export type WorkerKind = (typeof workerKinds)[number];

/** Settings of an S3-compatible store. */
export interface S3Config {
  endpoint?: string;
  /** Where callers reach the store, if not at `endpoint`; for presigned URLs. */
  publicEndpoint?: string;
  region: string;
  bucket: string;
  accessKeyId: string;
  secretAccessKey: string;
  forcePathStyle: boolean;
}

/** Who signs the Content Credentials of pictures. */
export interface CredentialsConfig {
  /** Of the first certificate and those that lead to its authority, in PEM. */
  certificate: string;
  /** One of these two: the file of its private key in PEM, or the URL of what signs with that key. */
  key?: string;
  signer?: string;
  /** URL of a time stamp server (RFC 3161). */
  timeStamp?: string;
  /** Whether they tell the prompt. */
  prompt: boolean;
  /** Whether pictures wait while nothing can be signed; else they are stored without. */
  isRequired: boolean;
}

/** The environment's settings, read once and checked together. Paths are absolute. */
export interface Config {
  port: number;
  host: string;
  /** Base of every public URL, without a trailing slash. */
  publicUrl: string;
  dataDir: string;
  modelsDir: string;
  /** Undefined: the embedded PostgreSQL of `npm start`. */
  databaseUrl?: string;
  queueBackend: 'postgres' | 'redis';
  redisUrl?: string;
  storage: 'file' | 's3';
  s3?: S3Config;
  /** `auto`, or the devices to draw on, with one engine thread each. */
  devices: 'auto' | ('cpu' | 'webgpu' | `cuda:${number}`)[];
  inferenceThreads: number;
  /** The worker ends, to be restarted, when an engine that draws or loads a model is silent for this many seconds. */
  engineStallSeconds: number;
  /** Megabytes for models and drawing on each device; undefined: half of the machine's memory, most of a GPU's. */
  inferenceMemoryMb?: number;
  /** Whether the bundled demonstration model may stand in for a model that is not installed. */
  modelFallback: boolean;
  /** `name=model`: which model OpenAI's clients mean by a name. The first that fits; `default` is that of no name. */
  modelAliases: string[];
  webhookAllowPrivate: boolean;
  /** Whether pictures that requests name may come from private addresses. */
  picturesAllowPrivate: boolean;
  /** Origins whose pages may call `/v1` and read pictures; `*` alone is any. */
  corsOrigins: string[];
  /** Who may keep pictures: the browser alone, or also a CDN before the service. */
  pictureCache: 'private' | 'public';
  /** Where the URLs of records lead: here, or for a while straight to the S3-compatible store. */
  pictureUrls: 'service' | 'presigned';
  pictureUrlSeconds: number;
  /** Its holder may read `/metrics` from anywhere; without it only this machine may. */
  metricsToken?: string;
  /** Requests per minute of one key. Here and in the next two fields 0 is no limit; a key may have its own limits. */
  rateLimitPerMinute: number;
  /** Waiting Generations and Prompts of one key. */
  maxQueuedPerKey: number;
  /** Generations and Prompts of one key that may be drawn at once. */
  maxConcurrentPerKey: number;
  /** Fine-Tunes of one key that may be trained at once; 0 means no limit. */
  maxTrainingsPerKey: number;
  workerKinds: readonly WorkerKind[];
  /** Megabytes (10^6 bytes) of one key's pictures and weights, including uploads in progress; 0 means no limit. */
  storageMbPerKey: number;
  /** How long the audit trail is kept; 0: there is none. */
  auditDays: number;
  logLevel: LogLevel;
  /** Port of the worker's health endpoint; 0 picks a free one. */
  inferenceHealthPort: number;
  /** Undefined: pictures say in XMP alone what they are. */
  credentials?: CredentialsConfig;
  /** Pictures are to be signed, and nobody has said with what. */
  lacksCertificate: boolean;
  /** What pictures are signed with here, in PEM; where no variable names it, it is there only if `npm start` made it. */
  ownCertificate: { path: string; isNamed: boolean };
  /** Other certificates that they were signed with, in PEM. */
  credentialsOwn?: string;
  /** A file of words and phrases that no prompt may have, each with a sentence. */
  promptRules?: string;
  /** Asked about texts and pictures, in the shape of OpenAI's moderations; with `moderationKey` as a Bearer token. */
  moderationUrl?: string;
  moderationKey?: string;
  /** What holds while it cannot be asked. */
  moderationOnError: 'allow' | 'refuse';
  hubEndpoint: string;
  hubToken?: string;
}
