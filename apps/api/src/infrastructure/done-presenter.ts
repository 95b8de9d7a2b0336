import type { GenerationDto } from '@app/domain/http';

/** What is known of a request that has waited. */
export interface WaitedRequest {
  ownerId: string;
  /** Its body as it was sent and checked. */
  body: unknown;
  /** The Generation has been deleted. */
  isDeleted: boolean;
  /** Its caller has disconnected. */
  isGone: boolean;
  /** Its caller may send it again under its Idempotency-Key. */
  isRepeatable: boolean;
}

/** Makes an answer of the Generation that a request has waited for. */
export interface DonePresenter {
  /** How long it may take, in seconds. */
  readonly waitSeconds: number;
  /** @param generation as it is after the wait, or as it was stored if it has been deleted. */
  present(generation: GenerationDto, request: WaitedRequest): Promise<object>;
}
