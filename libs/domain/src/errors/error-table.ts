interface ErrorRow {
  status: number;
  title: string;
  /** Stable error codes, which callers may rely on, and what each means, for `docs/errors.md`. */
  codes: Readonly<Record<string, string>>;
}

/**
 * Every error that a caller can get. The error classes name a kind and one of its codes; the response and the OpenAPI
 * document take the rest from here. A code of two kinds is about the path (`notFound`) or the body (`unprocessable`).
 */
export const errorTable = {
  invalid: {
    status: 400,
    title: 'Bad Request',
    codes: {
      ValidationFailed: 'A field or a parameter is missing or has a wrong value; `errors` says which. Correct it.',
      MalformedBody:
        'The body cannot be read: JSON that is not UTF-8, is cut short or has a syntax error, or a file that is empty or breaks off.',
      PromptMissing: 'The prompt is missing, null or empty.',
      FineTuneNameMissing: 'The name of the Fine-Tune is missing, null or empty.',
      FineTuneImagesMissing: '`images_url` is an empty list, or something else needs it and it is missing.',
      FineTuneImagesNotEnough: '`images_url` has fewer different pictures than a Fine-Tune needs.',
      IdempotencyKeyInvalid: 'The Idempotency-Key is empty, too long or has other than visible ASCII characters.',
      BadRequest:
        'The request line, a header or the length of the body cannot be read; with status 431, the headers are too large.',
    },
  },
  unauthorized: {
    status: 401,
    title: 'Unauthorized',
    codes: {
      Unauthorized: 'The key is missing, wrong, revoked or no longer valid. Send `Authorization: Bearer <key>`.',
    },
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    codes: {
      ScopeMissing:
        'The key is valid and may not do this. Use one with the scope that `detail` names; the operator makes one.',
      PublicCollection:
        'A public Collection can be read and applied by everybody, and changed by nobody. Make one of your own.',
      OriginRefused: 'A page of another address called `/mcp`. Its origin has to stand in `CORS_ORIGINS`.',
    },
  },
  notFound: {
    status: 404,
    title: 'Not Found',
    codes: {
      GenerationNotFound: 'There is no such Generation, or it is not yours.',
      FineTuneNotFound: 'There is no such Fine-Tune, or it is not yours. As 422: a body names it.',
      TrainingNotFound: 'The Fine-Tune was not trained here, nor were its weights fetched, so it has no events.',
      WeightsNotFound: 'The Fine-Tune has no weights.',
      PromptNotFound: 'There is no such Prompt, or it is not yours. As 422: a body names it.',
      CollectionNotFound: 'There is no such Collection, or it is neither yours nor public.',
      StyleNotFound: 'There is no such Style, or it is neither yours nor public. As 422: a body names it.',
      DeliveryNotFound: 'The webhook has no such delivery.',
      UploadNotFound: 'There is no such upload, or it is not yours, or its time is over.',
      KeyNotFound: 'There is no such key.',
      ImageNotFound: 'There is no such picture; it may have been deleted.',
      ModelNotFound:
        "No model of this name is installed, and `MODEL_ALIASES` names none for it. At the routes of OpenAI's API alone; elsewhere it is 422 `ModelNotInstalled`.",
      RouteNotFound: 'The service has no such path.',
    },
  },
  methodNotAllowed: {
    status: 405,
    title: 'Method Not Allowed',
    codes: { MethodNotAllowed: 'The path exists and does not take this method; `Allow` lists those that it takes.' },
  },
  timeout: {
    status: 408,
    title: 'Request Timeout',
    codes: {
      BodyTimeout: 'The body took too long to come. Send it again.',
      UploadStalled: 'An upload made too little progress. Send the file again.',
    },
  },
  conflict: {
    status: 409,
    title: 'Conflict',
    codes: {
      GenerationTerminated: 'The Generation has succeeded or failed, so it cannot be canceled.',
      PromptTerminated: 'The Prompt has succeeded or failed, so it cannot be canceled.',
      TrainingTerminated: 'The Fine-Tune has no training that could be canceled.',
      TrainingUnderWay: 'The Fine-Tune is being trained. Cancel that first, or wait for its end.',
      IdempotencyKeyInUse:
        'The first request with this Idempotency-Key is still running. Repeat it after `Retry-After`.',
      AccountConflict:
        'A key stays in the account in which it was made, and an account keeps its name; sandbox keys have accounts of their own. Make another key with `account`.',
      KeyInUse: 'A key cannot revoke itself. Use another key of the scope `admin`, or the command.',
      KeyRevoked: 'The key was revoked, and cannot be changed any more. Make a new key.',
    },
  },
  tooLarge: {
    status: 413,
    title: 'Payload Too Large',
    codes: { BodyTooLarge: 'The body has more bytes than this path takes.' },
  },
  unsupportedType: {
    status: 415,
    title: 'Unsupported Media Type',
    codes: {
      UnsupportedMediaType:
        'The body has another type than this path takes, or is compressed. Send `application/json`, or the type that `detail` names.',
    },
  },
  unprocessable: {
    status: 422,
    title: 'Unprocessable Entity',
    codes: {
      ModelNotInstalled: 'No model of this name is installed. `GET /v1/models` lists those that are.',
      ModelBroken:
        'The model is installed and cannot be drawn with; `GET /v1/models` says why. Its operator has to mend it.',
      SchedulerUnsupported:
        'The model cannot draw with this scheduler, or with its own where none is named. `detail` says which it can draw with.',
      UnsupportedByModel:
        'The model cannot do what a field asks for: a negative prompt, weights of words or a ControlNet. `detail` says why, and `cannot` in `GET /v1/models` lists it. Leave the field out, or choose another model.',
      ModelTakesNoReferences:
        'The model looks at no pictures beside the text, or cannot read one. Leave `references` out, or choose a model of FLUX.2.',
      ModelNeedsPicture: 'The model draws from a picture. Send `image`, or `image` and `mask`, as `detail` says.',
      PictureMissing: 'What was sent says how to draw from a picture, and there is none. Send `image` too.',
      StrengthTooLow: 'So little of the picture is drawn anew that it takes no step. Raise `strength` or `steps`.',
      PictureUnsupported:
        'The model has no encoder, so it can neither draw from a picture nor learn one. Leave pictures out, or choose another model.',
      TrainingUnsupported: 'The model cannot be trained here; the message says why. Choose another model.',
      MaskUnsupported: 'The model cannot repaint a part of a picture. Leave `mask` out, or choose another model.',
      ControlNotInstalled: 'No ControlNet of this name is installed. `GET /v1/models` lists those that are.',
      ControlDoesNotFitModel: 'The ControlNet is for models of another family. Choose one of the family of the model.',
      ModelIsControl: 'A ControlNet draws nothing alone. Name it in `control`, and another as `model`.',
      SafetyNotInstalled:
        'Install one with `npm run models -- add --kind safety`, or leave `filter` off; docs/moderation.md has more.',
      ModelIsSafetyChecker: 'A safety checker draws nothing. Name another `model`.',
      PromptDoesNotIncludeFineTuneName: 'A prompt on a Fine-Tune must have the Fine-Tune’s name in it, as a word.',
      PromptNotFound: 'There is no such Prompt, or it is not yours. As 422: a body names it.',
      StyleNotFound: 'There is no such Style, or it is neither yours nor public. As 422: a body names it.',
      PromptTooLong: 'The prompt has more tokens than can be drawn, or a caption more than can be learnt. Shorten it.',
      PromptRefused: 'The operator of this service does not want it drawn; `detail` says why. Ask for something else.',
      TooManyPrompts:
        'The request would make more Prompts, or with more text or metadata, than one request or this key may. Send less at a time.',
      FineTuneNotFound: 'There is no such Fine-Tune, or it is not yours. As 422: a body names it.',
      FineTuneOfOtherModel:
        'The Fine-Tune was made for another model than the one that is to draw. Combine only Fine-Tunes of one model, and leave `model` out or name that one.',
      FineTuneTokensEqual: 'Two embeddings have the same token, so the text cannot name either. Use one of them.',
      FineTuneStale: 'The base model was replaced since the weights were sent. Send them again.',
      FineTuneImagesMissing: '`images_url` is an empty list, or something else needs it and it is missing.',
      FineTuneCaptionsMismatch: '`captions` has not as many elements as `images_url`.',
      FineTuneNotTrained:
        'The training of the Fine-Tune failed or was canceled, or its weights could not be fetched, so it has none. Send some, or make another one.',
      WeightsAddressRefused:
        'The address in `weights_url` is private, which only an operator can allow, or one of this service that has no weights.',
      WeightsMissing:
        'The request needs weights, and the Fine-Tune has none. Send them first, or wait until it is trained.',
      ScaleUnsupported: 'A scale other than 1 is for a LoRA; a textual inversion has none. Leave it out.',
      WeightsMalformed:
        'The file is no whole safetensors file. Send it again, whole; another format has to be converted first.',
      WeightsDoNotFitModel:
        'The weights were trained on another model. Send them to a Fine-Tune whose `model` is that one, or one of its kind.',
      WeightsKindUnsupported:
        'The file holds something else than a LoRA, one of its kin or a textual inversion; `detail` names it. Export it as a LoRA.',
      WeightsTooComplex: 'The weights would take more work than is allowed. Reduce their rank.',
      DialectUnsupported:
        'Weights that were uploaded come back as they came. Leave `dialect` out; only what was trained here has other names too.',
      PictureUnreadable:
        'The file is no PNG, JPEG or WebP, is broken, or has more pixels or a longer edge than are taken, or fewer than a model looks at; `detail` says which. Send another.',
      PictureDoesNotFit:
        'With `outpaint` the picture stands in the larger one that is drawn, and it is too large for that, or its place is. Ask for a larger size, or send a smaller picture.',
      PictureNotFound:
        'A URL of this service leads to no upload and to no picture of yours. Uploads go after a day; send the picture again.',
      PictureAddressRefused:
        'The address of a picture is private. Only an operator can allow that; upload the picture.',
      StorageFull: 'The key has stored as much as it may. Delete pictures or weights, or ask for more room.',
      IdempotencyKeyReused:
        'The Idempotency-Key was used with another request in the last 24 hours. Send this one with a new key; what the first was answered comes again only if it is repeated as it was.',
      WebhookAddressRefused: 'The webhook’s address is private. Only an operator can allow that.',
      GenerationFailed: 'The pictures could not be drawn; `detail` says why.',
      moderation_blocked: 'All pictures were flagged, and none is stored. The code is that of OpenAI’s API.',
      GenerationUnfinished:
        'The pictures were not finished in time. They go on being drawn; ask for the Generation later.',
    },
  },
  tooMany: {
    status: 429,
    title: 'Too Many Requests',
    codes: {
      RateLimited: 'The key made more requests in a minute than it may. Repeat after `Retry-After`.',
      TooManyRequests: 'Too many requests of the key wait to be served. Wait for some of their answers.',
      QueueFull: 'The key has as many tasks waiting as it may. Repeat after `Retry-After`.',
      TooManyUploads:
        'The key has as many uploads running as it may, and this one has waited for long, or too many wait. Repeat after `Retry-After`.',
      RoomReserved: 'Uploads that are running have reserved the key’s last room. Repeat when they have ended.',
      TooManyEventStreams: 'The key has as many event streams open as it may. Close one.',
      ListRunning: 'The key is reading a complete list. Wait for its end, or ask for pages with `limit`.',
      TooManyWaiting: 'At `POST /v1/images/generations`: too many requests wait. Repeat after `Retry-After`.',
    },
  },
  internal: {
    status: 500,
    title: 'Internal Server Error',
    codes: { InternalError: 'The service is at fault. Its log has the reason under the id in `instance`.' },
  },
  unavailable: {
    status: 503,
    title: 'Service Unavailable',
    codes: {
      ServiceUnavailable:
        'The service cannot answer now, mostly because its database is away. Repeat after `Retry-After`.',
    },
  },
} as const satisfies Readonly<Record<string, ErrorRow>>;

/** Kinds of failure, which callers tell apart by status. */
export type ErrorKind = keyof typeof errorTable;

type KeysOf<T> = T extends unknown ? keyof T : never;

/** The codes of a kind. */
export type ErrorCode<K extends ErrorKind = ErrorKind> = KeysOf<(typeof errorTable)[K]['codes']>;

/** Every code once, in the order of the table. */
export const errorCodes = [
  ...new Set(Object.values(errorTable).flatMap(({ codes }) => Object.keys(codes))),
] as readonly ErrorCode[];

/** The RFC 9457 type of an error: where the service at this address explains it. */
export const problemType = (publicUrl: string, code: ErrorCode): string => `${publicUrl}/docs/errors#${code}`;
