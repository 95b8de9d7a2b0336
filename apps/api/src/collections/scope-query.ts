import { Query } from '@nestjs/common';
import type { PipeTransform } from '@nestjs/common';
import { badParameter } from '../http/query-problems';

/** The `scope` query parameter as a boolean: true for `public`, false when it is left out. */
export const IsPublicQuery = () => Query('scope', new ScopePipe());

class ScopePipe implements PipeTransform {
  /** @throws InvalidError for anything else. */
  transform(scope: unknown): boolean {
    if (scope === undefined) return false;
    if (scope === 'public') return true;
    throw badParameter('scope', 'must be public, or be left out');
  }
}
