import { signal } from '@preact/signals';

const retryMs = 1_500;

/** Whether the service answered the last time. */
export const isReachable = signal(true);

/** `fetch`, which notes whether the service answers. */
export const reachingFetch: typeof fetch = async (input, init) => {
  try {
    const response = await fetch(input, init);
    const isAway = [502, 503, 504].includes(response.status);
    // A proxy answers so when the service is gone. The service itself says 503 while its database is gone, and for
    // lesser faults: its health tells which.
    if (isAway && isOfService(response)) void ask();
    else noteReachable(!isAway);
    return response;
  } catch (error) {
    if (!(init?.signal?.aborted ?? false)) noteReachable(false);
    throw error;
  }
};

function isOfService({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('application/problem+json') ?? false;
}

let timer: ReturnType<typeof setTimeout> | undefined;

function noteReachable(isThere: boolean): void {
  isReachable.value = isThere;
  if (isThere || timer !== undefined) return;
  timer = setTimeout(() => {
    timer = undefined;
    void ask();
  }, retryMs);
}

async function ask(): Promise<void> {
  const answer = await fetch(`${serviceUrl}/health/ready`, {
    cache: 'no-store',
    signal: AbortSignal.timeout(5_000),
  }).catch(() => undefined);
  noteReachable(answer?.ok ?? false);
}

addEventListener('offline', () => noteReachable(false));
addEventListener('online', () => void ask());

/** This page is its root, also below a path of a proxy. */
export const serviceUrl = new URL('.', document.baseURI).href.replace(/\/$/, '');

/**
 * A picture's address on the host of this page. Records use the service's public address, which may name the same host
 * differently, and the page may load nothing from elsewhere.
 */
export function pictureUrl(url: string): string {
  const { pathname, searchParams } = new URL(url, serviceUrl);
  // A presigned URL of the store names the picture in a parameter.
  const file = searchParams.get('x-darkroom-picture') ?? pathname.slice(pathname.lastIndexOf('/') + 1);
  return `${serviceUrl}/images/${file}`;
}
