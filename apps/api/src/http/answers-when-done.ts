import type { GenerationDto } from '@app/domain/http';
import type { Type } from '@nestjs/common';
import { SetMetadata } from '@nestjs/common';

const waitKey = 'answersWhenDone';

/** What is known of a wait at its end. */
export interface EndedWait {
  ownerId: string;
  /** `response_format` of the body, as it was sent and checked. */
  responseFormat: unknown;
  /** The Generation has been deleted. */
  isDeleted: boolean;
  /** Its caller has disconnected, and cannot repeat the request to learn the Generation's id. */
  isAbandoned: boolean;
}

/** The answer of a route that waits for its Generation. */
export interface WaitedAnswer {
  /** How long it may take, in seconds. */
  readonly waitSeconds: number;
  /** @param generation as it is after the wait, or as it was stored if it has been deleted. */
  present(generation: GenerationDto, wait: EndedWait): Promise<object>;
}

/** How a route waits: as its caller prefers, or always, with an answer of its own. */
type WaitRule = 'as preferred' | Type<WaitedAnswer>;

/** For a route that makes a Generation, and whose answer may wait until that has terminated. */
export const AnswersWhenDone = (rule: WaitRule = 'as preferred') => SetMetadata(waitKey, rule);

export function waitRuleOf(route: object): WaitRule | undefined {
  return Reflect.getMetadata(waitKey, route) as WaitRule | undefined;
}
