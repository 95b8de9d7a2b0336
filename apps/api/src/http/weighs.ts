import { SetMetadata } from '@nestjs/common';
import type { Request } from 'express';
import type { RequestWeight } from './request-turns';

const weightKey = 'weight';

/** A body that is larger than this, or has no length, is heavy. */
export const lightBytes = 16 * 1024;

/**
 * Says what every request of a route weighs, whatever its body: light where a GET answers with one record, heavy where
 * a short body may stand for many.
 */
export const Weighs = (weight: RequestWeight) => SetMetadata(weightKey, weight);

/** What a request weighs where its route does not say: a GET is heavy, and any other as its body is large. */
export function weightOf(route: object, { method, headers }: Request): RequestWeight {
  const weight = Reflect.getMetadata(weightKey, route) as RequestWeight | undefined;
  if (weight !== undefined) return weight;
  if (method === 'GET') return 'heavy';
  const isSmall = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= lightBytes;
  return isSmall ? 'light' : 'heavy';
}
