import { computed, effect, type Signal, signal } from '@preact/signals';
import { reachingFetch, serviceUrl } from '../service/reach';
import { type Client, createClient, DarkroomError, type Key } from '../service/client';

/** The key is in memory and, if the user asks, in the tab's session storage; nowhere else. */
interface Session {
  key: string;
  client: Client;
}

const storageName = 'darkroom.key';
const codePattern = /^#code=([\w-]*)/;
/** A browser waits this long before it shows the form for a key. */
const signInMs = 10_000;

const current = signal<Session | undefined>();
export const session = computed(() => current.value);
/** Why the user has to sign in, if it is not the first time. */
export const signInReason = signal<'revoked' | 'code' | 'away' | undefined>();

/** Whether the key survives a reload of this tab. */
export const isKept = signal(false);

/** The client of the signed-in caller. */
export function client(): Client {
  const found = current.value;
  if (!found) throw new DarkroomError('', 401);
  return found.client;
}

/** @throws DarkroomError if the service does not accept the key, or does not answer */
export async function signIn(key: string, keep: boolean): Promise<void> {
  const candidate = createClient({ baseUrl: serviceUrl, apiKey: key, fetch: reachingFetch, retries: 1 });
  await candidate.models.list();
  open(key, keep);
}

/** Tells tabs opened from one another, which share the key, that the user has signed out. */
const channel = new BroadcastChannel('darkroom.session');
channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
  if (current.peek() && data === nameOf(current.peek()!.key)) leave();
});

/** The part that is no secret: dr_ and 12 characters. */
const nameOf = (key: string): string => key.slice(0, 15);

export function signOut(): void {
  if (current.peek()) channel.postMessage(nameOf(current.peek()!.key));
  leave();
}

function leave(reason?: 'revoked'): void {
  sessionStorage.removeItem(storageName);
  current.value = undefined;
  signInReason.value = reason;
}

/** Signs in with a code in the address, which is newer, or with the key of the tab's session. */
export async function resume(): Promise<void> {
  const code = takeCode();
  const stored = sessionStorage.getItem(storageName);
  if (code === undefined) return stored ? open(stored, true) : undefined;
  const answer = await reachingFetch(`${serviceUrl}/sign-in`, {
    method: 'POST',
    headers: { Authorization: `Code ${code}` },
    signal: AbortSignal.timeout(signInMs),
  }).catch(() => undefined);
  if (!answer?.ok) {
    // A key that the tab has still works.
    if (stored) return open(stored, true);
    signInReason.value = answer ? 'code' : 'away';
    // With the code in the address again, a reload retries it.
    if (!answer) history.replaceState(null, '', `#code=${code}`);
    return;
  }
  const { api_key: key } = (await answer.json()) as { api_key: string };
  // A code works once: without this a reload would end the session.
  open(key, true);
}

/** A code may be put into the address of a page that is open. */
addEventListener('hashchange', () => {
  if (codePattern.test(location.hash)) void resume();
});

/** Also takes it out of the browser's history. */
function takeCode(): string | undefined {
  const [, code] = codePattern.exec(location.hash) ?? [];
  if (code !== undefined) history.replaceState(null, '', `${location.pathname}${location.search}#/`);
  return code;
}

function open(key: string, keep: boolean): void {
  if (keep) sessionStorage.setItem(storageName, key);
  isKept.value = keep;
  signInReason.value = undefined;
  // A key that the service no longer accepts ends its session; a late answer says nothing about the next session.
  const checkedFetch: typeof fetch = async (input, init) => {
    const response = await reachingFetch(input, init);
    if (response.status === 401 && current.peek() === opened) leave('revoked');
    return response;
  };
  const opened = { key, client: createClient({ baseUrl: serviceUrl, apiKey: key, fetch: checkedFetch, retries: 2 }) };
  current.value = opened;
}

/** A signal that starts anew when another caller signs in, or nobody is signed in. */
export function sessionSignal<T>(initial: () => T): Signal<T> {
  const held = signal(initial());
  let owner = session.peek();
  effect(() => {
    if (session.value === owner) return;
    owner = session.value;
    held.value = initial();
  });
  return held;
}

/** Drops an answer that comes when another caller is signed in. */
export async function forThisSession<T>(reading: Promise<T>, keep: (value: T) => void): Promise<void> {
  const mine = session.peek();
  const value = await reading;
  if (session.peek() === mine) keep(value);
}

/** Undefined until the service has said what the key may do. */
export const currentKey = sessionSignal<Key | undefined>(() => undefined);

/** Whether it may operate the service. */
export const isOperator = computed(() => currentKey.value?.scopes.includes('admin') ?? false);

export const loadCurrentKey = (): Promise<void> =>
  forThisSession(client().keys.current(), (found) => (currentKey.value = found));
