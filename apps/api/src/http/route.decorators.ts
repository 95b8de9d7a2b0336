import type { GenerationDto } from '@app/domain/http';
import { SetMetadata, type Type } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { RequestWeight } from '../defence/open-requests';

const weightKey = 'weight';

/** A body that is larger than this, or has no length, is heavy. */
export const lightBytes = 16 * 1024;

/**
 * Says what every request of a route weighs, whatever its body: light where a GET answers with one record, heavy where
 * a short body may stand for many.
 */
export const Weighs = (weight: RequestWeight) => SetMetadata(weightKey, weight);

/** Weight of a request whose route says none: a GET is heavy, any other by the size of its body. */
export function weightOf(route: object, { method, headers }: Request): RequestWeight {
  const weight = Reflect.getMetadata(weightKey, route) as RequestWeight | undefined;
  if (weight !== undefined) return weight;
  if (method === 'GET') return 'heavy';
  const isSmall = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= lightBytes;
  return isSmall ? 'light' : 'heavy';
}

const fileKey = 'takesFile';

/** For a route whose body is a file, which the route reads as a stream instead of JSON. */
export const TakesFile = () => SetMetadata(fileKey, true);

export function takesFile(route: object): boolean {
  return Reflect.getMetadata(fileKey, route) === true;
}

const formKey = 'takesForm';

/** For a route whose body is a form with files, which the route reads as it comes. */
export const TakesForm = () => (prototype: object, name: string | symbol, property: PropertyDescriptor) => {
  SetMetadata(fileKey, true)(prototype, name, property);
  SetMetadata(formKey, true)(prototype, name, property);
};

export function takesForm(route: object): boolean {
  return Reflect.getMetadata(formKey, route) === true;
}

const locationKey = 'location';

type Located = Readonly<Record<string, unknown>>;

/** Says under which path the record of a POST can be read: its `Location` is that path and its id. */
export const LocatedAt = (path: string | ((record: Located) => string)) => SetMetadata(locationKey, path);

/** The path of the record in an answer; undefined for a route that has none, and for several records. */
export function locationOf(route: object, body: unknown): string | undefined {
  const path = Reflect.getMetadata(locationKey, route) as string | ((record: Located) => string) | undefined;
  if (path === undefined || typeof body !== 'object' || body === null || !('id' in body)) return undefined;
  const record = body as Located & { id: string };
  return `${typeof path === 'string' ? path : path(record)}/${record.id}`;
}

const secretsKey = 'secrets';

/** Names the fields of a route's answer that are never stored under an `Idempotency-Key`: a replay has null there. */
export const AnswersSecrets = (...fields: string[]) => SetMetadata(secretsKey, fields);

/** An answer as it may be stored. */
export function withoutSecrets(route: object, body: unknown): unknown {
  const fields = Reflect.getMetadata(secretsKey, route) as string[] | undefined;
  if (!fields) return body;
  return { ...(body as object), ...Object.fromEntries(fields.map((field) => [field, null])) };
}

/** Ids of the record, or of the records, in an answer. */
export function idsIn(body: unknown): string[] {
  return [body].flat().flatMap((record) => {
    const id = (record as { id?: unknown } | null | undefined)?.id;
    return typeof id === 'string' ? [id] : [];
  });
}

const waitKey = 'answersWhenDone';

export interface WaitedExchange {
  request: Request;
  response: Response;
}

/** Facts of a wait at its end. */
export interface EndedWait {
  ownerId: string;
  accountId: string;
  /** Of the request, checked. */
  body: unknown;
  isDeleted: boolean;
}

/** An answer that begins before the wait, with its head. */
export interface WaitedStream {
  /** Sent while nothing else is, so that no balancer closes its connection. */
  sign(): void;
  /** Resolves when its reader has taken it, or has gone. @param answer as presented */
  end(answer: object): Promise<void>;
}

/** The answer of a route that waits for its Generation. */
export interface WaitedAnswer {
  /** In seconds. */
  readonly waitSeconds: number;
  /** Sets headers before the wait; @returns a stream, if the answer is to be one */
  begin(generation: GenerationDto, exchange: WaitedExchange): Promise<WaitedStream | undefined>;
  /** @param generation after the wait, or as it was stored if it has been deleted. */
  present(generation: GenerationDto, wait: EndedWait): Promise<object>;
}

/** As its caller prefers, or always, with an answer of its own. */
type WaitRule = 'as preferred' | Type<WaitedAnswer>;

/** For a route that makes a Generation, and whose answer may wait until that has terminated. */
export const AnswersWhenDone = (rule: WaitRule = 'as preferred') => SetMetadata(waitKey, rule);

export function waitRuleOf(route: object): WaitRule | undefined {
  return Reflect.getMetadata(waitKey, route) as WaitRule | undefined;
}
