const finetune = [
  'id',
  'title',
  'name',
  'token',
  'model',
  'status',
  'weights',
  'metadata',
  'error_message',
  'note',
  'created_at',
];
const collection = ['id', 'name', 'thumbnail'];
const style = ['id', 'name', 'thumbnail'];
const promptKeys = [
  'id',
  'prompt',
  'negative_prompt',
  'cfg',
  'steps',
  'seed',
  'high_resolution',
  'aspect_ratio',
  'images',
  'metadata',
  'error_message',
  'created_at',
];
const generation = [
  'id',
  'prompt',
  'negative_prompt',
  'aspect_ratio',
  'webhook',
  'model',
  'num_generations',
  'metadata',
  'error',
  'started_at',
  'status',
  'images',
  'cfg',
  'steps',
  'seed',
  'scheduler',
  'high_resolution',
  'output_format',
  'prompt_weighting',
  'prompt_chunks',
  'upscaler',
  'served_by',
  'completed_at',
];
const delivery = ['id', 'url', 'status', 'attempts', 'next_attempt_at', 'created_at', 'completed_at'];
const deleted = ['delete'];
const apiKey = [
  'id',
  'prefix',
  'name',
  'scopes',
  'sandbox',
  'rate_limit_per_minute',
  'max_queued',
  'max_concurrent',
  'max_storage_mb',
  'retention_days',
  'created_at',
  'last_used_at',
  'revoked_at',
];

/** The successful response of an operation. */
export interface ReplyRow {
  status: 200 | 201;
  /** Keys of the object, or of each element; every list in the test has an element. */
  keys: readonly string[];
  isArray?: true;
  /** Whether the body has another type than JSON. */
  contentType?: string;
}

const list = (keys: readonly string[]): ReplyRow => ({ status: 200, keys, isArray: true });
const made = (keys: readonly string[]): ReplyRow => ({ status: 201, keys });
const found = (keys: readonly string[]): ReplyRow => ({ status: 200, keys });

/** The response of every operation. */
export const replies: Readonly<Record<string, ReplyRow>> = {
  createGeneration: made(generation),
  listGenerations: list(generation),
  getGeneration: found(generation),
  cancelGeneration: made(generation),
  deleteGeneration: found(deleted),
  streamGenerationEvents: { status: 200, keys: [], contentType: 'text/event-stream' },
  listDeliveries: list(delivery),
  redeliver: made(delivery),
  createFinetuneOrGeneration: made(finetune),
  listFinetunes: list(finetune),
  getFinetune: found(finetune),
  updateFinetune: found(finetune),
  deleteFinetune: found(deleted),
  putFinetuneWeights: found(finetune),
  createPrompts: { ...made(promptKeys), isArray: true },
  applyStyles: { ...made(['id', 'error_message', 'images', 'created_at']), isArray: true },
  listPrompts: list(promptKeys),
  getPrompt: found(promptKeys),
  deletePrompt: found(deleted),
  getPromptStatus: found([
    'status',
    'queue_position',
    'step',
    'steps',
    'served_by',
    'upscaler',
    'prompt_chunks',
    'started_at',
    'completed_at',
  ]),
  streamPromptEvents: { status: 200, keys: [], contentType: 'text/event-stream' },
  createCollection: made(collection),
  listCollections: list(collection),
  getCollection: found(collection),
  deleteCollection: found(deleted),
  createStyles: { ...made(style), isArray: true },
  listStyles: list(style),
  getStyle: found(style),
  deleteStyle: found(deleted),
  listModels: list([
    'name',
    'scheduler',
    'native_size',
    'device',
    'hash',
    'bytes',
    'defaults',
    'requires_cuda',
    'stands_in_for',
    'problem',
  ]),
  listUsage: list(['day', 'images', 'steps', 'compute_seconds']),
  createImages: found(['created', 'data']),
  createKey: made([...apiKey, 'token', 'webhook_secret']),
  listKeys: list(apiKey),
  updateKey: found(apiKey),
  rotateKey: made([...apiKey, 'token', 'previous_token_expires_at']),
  revokeKey: found(deleted),
};
