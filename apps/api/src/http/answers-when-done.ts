import type { Type } from '@nestjs/common';
import { SetMetadata } from '@nestjs/common';
import type { DonePresenter } from '../infrastructure/done-presenter';

const waitKey = 'answersWhenDone';

/** How a route waits: as its caller prefers, or always, with an answer of its own. */
type WaitRule = 'as preferred' | Type<DonePresenter>;

/** For a route that makes a Generation, and whose answer may wait until that has terminated. */
export const AnswersWhenDone = (rule: WaitRule = 'as preferred') => SetMetadata(waitKey, rule);

export function waitRuleOf(route: object): WaitRule | undefined {
  return Reflect.getMetadata(waitKey, route) as WaitRule | undefined;
}
