import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BlockList } from 'node:net';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');
/** Headers that a proxy on this machine adds; the real caller may be anybody. */
const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'];

/**
 * Names of this machine. Under another name that resolves to it, a foreign page could read the metrics through its
 * visitor's browser (DNS rebinding).
 */
const localHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;

/**
 * Whether metrics may be read: by local callers who address this machine as such and come through no proxy, and
 * by holders of the token.
 */
export function mayReadMetrics(request: Pick<IncomingMessage, 'headers' | 'socket'>, token?: string): boolean {
  const { headers, socket } = request;
  const given = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (token !== undefined && given !== undefined) return isSame(given, token);
  if (proxyHeaders.some((name) => headers[name] !== undefined)) return false;
  if (headers.host !== undefined && !localHost.test(headers.host)) return false;
  const { remoteAddress = '', remoteFamily } = socket;
  return remoteAddress !== '' && loopback.check(remoteAddress, remoteFamily === 'IPv6' ? 'ipv6' : 'ipv4');
}

function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(first, second);
}
