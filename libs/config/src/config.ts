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
