import { computed, signal } from '@preact/signals';
import { serviceUrl } from '../service/address';
import type { Client } from '../service/client';
import { createClient, DarkroomError } from '../service/client';
import { reachingFetch } from '../service/reach';

/** A signed-in caller. The key is in memory, and where the user asks for it in the tab's session; nowhere else. */
export interface Session {
  key: string;
  client: Client;
}

const storageName = 'darkroom.key';
const codePattern = /^#code=([\w-]+)$/;

const current = signal<Session | undefined>();
export const session = computed(() => current.value);
/** Why the user has to sign in, if it is not the first time. */
export const signInReason = signal<'revoked' | 'code' | undefined>();

/** Whether the key survives a reload of this tab. */
export const isKept = signal(false);

/** The client of the signed-in caller. */
export function client(): Client {
  const found = current.value;
  if (!found) throw new DarkroomError('', 401);
  return found.client;
}

/** @throws DarkroomError if the service does not accept the key, or does not answer. */
export async function signIn(key: string, keep: boolean): Promise<void> {
  const candidate = createClient({ baseUrl: serviceUrl, apiKey: key, fetch: reachingFetch, retries: 1 });
  await candidate.models.list();
  open(key, keep);
}

export function signOut(reason?: 'revoked'): void {
  sessionStorage.removeItem(storageName);
  current.value = undefined;
  signInReason.value = reason;
}

/** Signs in with what the tab has: a code in the address, or the key of its session. */
export async function resume(): Promise<void> {
  const code = takeCode();
  const stored = sessionStorage.getItem(storageName);
  if (stored) return open(stored, true);
  if (code === undefined) return;
  const answer = await reachingFetch(`${serviceUrl}/sign-in`, {
    method: 'POST',
    headers: { Authorization: `Code ${code}` },
  }).catch(() => undefined);
  if (!answer?.ok) {
    signInReason.value = 'code';
    return;
  }
  const { api_key: key } = (await answer.json()) as { api_key: string };
  // A code works once, so without this a reload would end the session.
  open(key, true);
}

/** Takes the code out of the address and so out of the browser's history. */
export function takeCode(): string | undefined {
  const [, code] = codePattern.exec(location.hash) ?? [];
  if (code !== undefined) history.replaceState(null, '', `${location.pathname}${location.search}#/`);
  return code;
}

function open(key: string, keep: boolean): void {
  if (keep) sessionStorage.setItem(storageName, key);
  isKept.value = keep;
  signInReason.value = undefined;
  current.value = { key, client: createClient({ baseUrl: serviceUrl, apiKey: key, fetch: checkedFetch, retries: 2 }) };
}

/** A key that the service no longer accepts ends the session. */
const checkedFetch: typeof fetch = async (input, init) => {
  const response = await reachingFetch(input, init);
  if (response.status === 401 && current.value) signOut('revoked');
  return response;
};
