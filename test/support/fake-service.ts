/** A request as it was sent. */
export interface Sent {
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: unknown;
  signal?: AbortSignal | null;
}

export type Answer = Response | Error | ((sent: Sent) => Response | Promise<Response>);

export const problem = (status: number, headers: Record<string, string> = {}, code = 'RateLimited') =>
  new Response(JSON.stringify({ detail: 'Not now.', code, status, instance: 'abc' }), {
    status,
    headers: { 'content-type': 'application/problem+json', ...headers },
  });
export const json = (body: unknown) =>
  new Response(JSON.stringify(body), { headers: { 'content-type': 'application/json' } });

/** An answer whose body never ends, unless its request is aborted. */
export const endless =
  (status: number, type = 'application/problem+json') =>
  ({ signal }: Sent) => {
    const start = (controller: ReadableStreamDefaultController) =>
      signal?.addEventListener('abort', () => controller.error(signal.reason));
    return new Response(new ReadableStream({ start }), { status, headers: { 'content-type': type } });
  };

/** A `fetch` that gives its answers in order, and repeats the last one forever. */
export class FakeService {
  readonly sent: Sent[] = [];

  constructor(private readonly answers: Answer[]) {}

  readonly fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted();
    const sent = {
      method: init.method ?? 'GET',
      url: new URL(url instanceof Request ? url.url : url).href,
      headers: init.headers as Record<string, string>,
      body: init.body,
      signal: init.signal,
    };
    this.sent.push(sent);
    const answer = this.answers[Math.min(this.sent.length, this.answers.length) - 1];
    if (answer instanceof Error) throw answer;
    return typeof answer === 'function' ? answer(sent) : answer.clone();
  };
}

/** Advances jest's fake time until a promise is settled. @returns by how many milliseconds. */
export async function elapsed(work: Promise<unknown>): Promise<number> {
  const start = Date.now();
  let settled = false;
  const end = () => (settled = true);
  work.then(end, end);
  for (let n = 0; !settled && n < 10_000; n++) await jest.advanceTimersByTimeAsync(10);
  return Date.now() - start;
}
