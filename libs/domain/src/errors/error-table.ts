interface ErrorRow {
  /** HTTP status, and its usual title. */
  status: number;
  title: string;
  /** Stable error codes, which callers may rely on. */
  codes: readonly string[];
}

/**
 * Every error that a caller can get. The error classes name a kind and one of its codes; the response and the
 * OpenAPI document take the rest from here. A code of two kinds says the same about the path (`notFound`) and the
 * body (`unprocessable`).
 */
export const errorTable = {
  invalid: {
    status: 400,
    title: 'Bad Request',
    codes: [
      'ValidationFailed',
      'MalformedBody',
      'PromptMissing',
      'FineTuneNameMissing',
      'FineTuneImagesMissing',
      'FineTuneImagesNotEnough',
      'IdempotencyKeyInvalid',
      'BadRequest',
    ],
  },
  unauthorized: { status: 401, title: 'Unauthorized', codes: ['Unauthorized'] },
  forbidden: { status: 403, title: 'Forbidden', codes: ['ScopeMissing', 'PublicCollection'] },
  notFound: {
    status: 404,
    title: 'Not Found',
    codes: [
      'GenerationNotFound',
      'FineTuneNotFound',
      'PromptNotFound',
      'CollectionNotFound',
      'StyleNotFound',
      'DeliveryNotFound',
      'KeyNotFound',
      'ImageNotFound',
      'RouteNotFound',
    ],
  },
  methodNotAllowed: { status: 405, title: 'Method Not Allowed', codes: ['MethodNotAllowed'] },
  timeout: { status: 408, title: 'Request Timeout', codes: ['BodyTimeout', 'UploadStalled'] },
  conflict: {
    status: 409,
    title: 'Conflict',
    codes: ['GenerationTerminated', 'IdempotencyKeyInUse', 'KeyInUse', 'KeyRevoked'],
  },
  tooLarge: { status: 413, title: 'Payload Too Large', codes: ['BodyTooLarge'] },
  unsupportedType: { status: 415, title: 'Unsupported Media Type', codes: ['UnsupportedMediaType'] },
  unprocessable: {
    status: 422,
    title: 'Unprocessable Entity',
    codes: [
      'ModelNotInstalled',
      'ModelBroken',
      'SchedulerUnsupported',
      'SizeUnsupported',
      'PromptDoesNotIncludeFineTuneName',
      'PromptNotFound',
      'StyleNotFound',
      'PromptTooLong',
      'TooManyPrompts',
      'FineTuneStale',
      'WeightsMissing',
      'ScaleUnsupported',
      'WeightsMalformed',
      'WeightsDoNotFitModel',
      'WeightsKindUnsupported',
      'WeightsTooComplex',
      'StorageFull',
      'IdempotencyKeyReused',
      'WebhookAddressRefused',
      'GenerationFailed',
      'GenerationUnfinished',
    ],
  },
  tooMany: {
    status: 429,
    title: 'Too Many Requests',
    codes: [
      'RateLimited',
      'TooManyRequests',
      'QueueFull',
      'TooManyUploads',
      'RoomReserved',
      'TooManyEventStreams',
      'ListRunning',
      'TooManyWaiting',
    ],
  },
  internal: { status: 500, title: 'Internal Server Error', codes: ['InternalError'] },
  unavailable: { status: 503, title: 'Service Unavailable', codes: ['ServiceUnavailable'] },
} as const satisfies Readonly<Record<string, ErrorRow>>;

/** Kinds of failure, which callers tell apart by status. */
export type ErrorKind = keyof typeof errorTable;

/** The codes of a kind. */
export type ErrorCode<K extends ErrorKind = ErrorKind> = (typeof errorTable)[K]['codes'][number];

/** Every code once, in the order of the table. */
export const errorCodes: readonly ErrorCode[] = [...new Set(Object.values(errorTable).flatMap(({ codes }) => codes))];
