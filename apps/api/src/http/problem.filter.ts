import { type Config, CONFIG } from '@app/config';
import {
  DomainError,
  errorTable,
  type FieldProblem,
  InvalidError,
  problemType,
  ServiceUnavailableError,
} from '@app/domain';
import { JsonLogger } from '@app/observability';
import { StorageUnavailableError } from '@app/storage';
import type { Request, Response } from 'express';
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Inject } from '@nestjs/common';
import {
  QueryRunnerAlreadyReleasedError,
  QueryRunnerProviderAlreadyReleasedError,
  TransactionNotStartedError,
} from 'typeorm';
import { frame } from './server-sent-events';
import { HttpError, InternalError, MethodNotAllowedError, RouteNotFoundError } from './http-errors';

/** RFC 9457 body of every error. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: string;
  errors?: readonly FieldProblem[];
}

/** OpenAI's types of errors, by status; all others are the request's fault. */
const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
  500: 'server_error',
  503: 'server_error',
};

/** Whether a request gets errors in the shape of OpenAI's API: by its path, or for models by its client. */
export function asksOpenai(request: Request): boolean {
  return /^\/v1\/images(?:\/|$)/i.test(request.path) || (isModelPath(request.path) && isOpenaiClient(request));
}

const isModelPath = (path: string): boolean => /^\/v1\/models(?:\/|$)/i.test(path);

/** Whether a request comes from one of OpenAI's own clients, which name themselves, in browsers too. */
export const isOpenaiClient = ({ headers }: Request): boolean =>
  headers['x-stainless-lang'] !== undefined || /^(?:Async)?(?:Azure)?OpenAI\//.test(headers['user-agent'] ?? '');

/** An error in the shape of OpenAI's API. */
export function openaiProblem({ status, detail, code, errors }: Problem): object {
  const [first] = errors ?? [];
  const param = first?.parameter ?? (first?.pointer ? first.pointer.slice(1) : null);
  return { error: { message: detail, type: types[status] ?? 'invalid_request_error', param, code } };
}

interface RouterLayer {
  route?: { methods: Record<string, boolean> };
  match(path: string): boolean;
}

/** Methods with a route at the request's path, in upper case; empty if there is no route at all. */
export function allowedMethods(request: Request): string[] {
  const { stack } = request.app.router as unknown as { stack: RouterLayer[] };
  const methods = stack.flatMap((layer) =>
    layer.route && layer.match(request.path) ? Object.keys(layer.route.methods) : [],
  );
  const upper = new Set(methods.filter((method) => method !== '_all').map((method) => method.toUpperCase()));
  if (upper.has('GET')) upper.add('HEAD');
  return [...upper].sort();
}

/**
 * Temporary failures: connection errors of the database driver, by name, and PostgreSQL's errors of a server that is
 * read-only (25006), unreachable (08, 57P0), out of resources (53), has lost its files or disk (58), or took too long
 * (57014, 55P03, 25P03).
 */
const outage =
  /^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|57P0[1-5]|57014|08...|53...|58...|25006|25P03|55P03)$/;
const outageMessage =
  /terminated unexpectedly|Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable|Driver not Connected/i;

/** TypeORM's message for a transaction whose connection broke between two statements. */
const brokenTransactions = [
  QueryRunnerProviderAlreadyReleasedError,
  QueryRunnerAlreadyReleasedError,
  TransactionNotStartedError,
];

const challenge = 'Bearer realm="darkroom"';

/** Turns every error into problem+json; an unknown one into a 500 without detail, logged with the request's id. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(
    @Inject(JsonLogger) private readonly logger: JsonLogger,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<Response>();
    const request = host.switchToHttp().getRequest<Request>();
    this.send(error, request, response);
  }

  /** Also for errors thrown before Nest handles the request. */
  send(thrown: unknown, request: Request, response: Response): void {
    const error = this.domainErrorOf(thrown, request);
    const { status, title } = errorTable[error.kind];
    const { code, message: detail, fields: errors, retryAfterSeconds } = error;
    const problem: Problem = {
      type: problemType(this.config.publicUrl, code),
      title,
      status,
      detail,
      instance: request.id,
      code,
      ...(errors && { errors }),
    };
    if (response.headersSent) {
      cutOff(request, response, problem);
      return;
    }
    // The unread rest of a body would be parsed as the next request on this connection.
    if (!request.complete) response.setHeader('Connection', 'close');
    if (retryAfterSeconds !== undefined) response.setHeader('Retry-After', String(retryAfterSeconds));
    if (error.kind === 'unauthorized') response.setHeader('WWW-Authenticate', challenge);
    if (error instanceof HttpError) response.set(error.headers);
    if (asksOpenai(request)) response.status(status).json(openaiProblem(problem));
    else response.status(status).type('application/problem+json').send(JSON.stringify(problem));
  }

  private domainErrorOf(error: unknown, request: Request): DomainError {
    if (error instanceof DomainError) return error as DomainError;
    if (error instanceof HttpException && error.getStatus() === 404) return routeError(request);
    if (error instanceof HttpException && error.message.startsWith('Failed to decode param')) return unreadablePath();
    if (error instanceof HttpException && error.getStatus() < 500) return new InvalidError('BadRequest', error.message);
    if (error instanceof URIError || (error as { status?: number }).status === 400) return unreadablePath();
    if (error instanceof StorageUnavailableError) {
      this.logger.warnSparingly('the storage is down', { requestId: request.id, reason: error.message });
      return new ServiceUnavailableError('The service cannot reach its storage. Try again shortly.');
    }
    if (isOutage(error)) {
      this.logger.warnSparingly('a dependency is down', { requestId: request.id, reason: (error as Error).message });
      return new ServiceUnavailableError('The service cannot reach its database. Try again shortly.');
    }
    this.logger.error('request failed', { requestId: request.id, method: request.method }, error);
    return new InternalError();
  }
}

/** After white space people see the error; for a program the answer is broken, as it must be. A stream has an event. */
function cutOff(request: Request, response: Response, problem: Problem): void {
  if (asksOpenai(request) && String(response.getHeader('content-type')).startsWith('text/event-stream')) {
    response.end(frame('error', { type: 'error', ...openaiProblem(problem) }));
    return;
  }
  if (!asksOpenai(request) || !response.writable) response.destroy();
  else response.write(JSON.stringify(openaiProblem(problem)), () => response.destroy());
}

/** An escape in the path is no UTF-8: no route is found, and no key is asked for. */
function unreadablePath(): InvalidError {
  return new InvalidError(
    'BadRequest',
    'The path cannot be read: each "%" must begin an escape of UTF-8 such as %C3%A9; a percent sign itself is %25.',
  );
}

/** Where other methods have a route, the method is wrong and not the path. */
function routeError(request: Request): DomainError {
  const allowed = allowedMethods(request);
  if (allowed.length > 0 && !allowed.includes(request.method))
    return new MethodNotAllowedError(request.method, allowed);
  return new RouteNotFoundError(request.method, request.path);
}

function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, errors, cause, driverError } = error as Error & {
    code?: string;
    errors?: unknown[];
    driverError?: unknown;
  };
  return (
    (code !== undefined && outage.test(code)) ||
    outageMessage.test(error.message) ||
    brokenTransactions.some((kind) => error instanceof kind) ||
    Boolean(errors?.some(isOutage)) ||
    (driverError !== error && isOutage(driverError)) ||
    isOutage(cause)
  );
}
