import type { Problem } from './problem';

/** The type of an error in OpenAI's API, by status; all others are the request's fault. */
const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
  500: 'server_error',
  503: 'server_error',
};

/** Whether a path belongs to the routes in the shape of OpenAI's API. */
export function isOpenaiPath(path: string): boolean {
  return /^\/v1\/images(?:\/|$)/i.test(path);
}

/** An error in the shape of OpenAI's API. */
export function openaiProblem({ status, detail, code, errors }: Problem): object {
  const [first] = errors ?? [];
  const param = first?.parameter ?? (first?.pointer ? first.pointer.slice(1) : null);
  return { error: { message: detail, type: types[status] ?? 'invalid_request_error', param, code } };
}
