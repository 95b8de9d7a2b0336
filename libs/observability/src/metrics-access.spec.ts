import type { IncomingMessage } from 'node:http';
import { mayReadMetrics } from './metrics-access';

const token = 'a-token-of-metrics';
const ask = (remoteAddress: string, headers: Record<string, string> = {}) =>
  ({
    headers,
    socket: { remoteAddress, remoteFamily: remoteAddress.includes(':') ? 'IPv6' : 'IPv4' },
  }) as unknown as IncomingMessage;

describe(mayReadMetrics.name, () => {
  it.each(['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1'])('lets %s read', (address) => {
    expect([mayReadMetrics(ask(address)), mayReadMetrics(ask(address), token)]).toEqual([true, true]);
  });

  it.each(['10.0.0.1', '192.0.2.7', '::ffff:10.0.0.1', '2001:db8::1', ''])('does not let %s read', (address) => {
    expect([mayReadMetrics(ask(address)), mayReadMetrics(ask(address), token)]).toEqual([false, false]);
  });

  it('does not let a page read whose own name resolves to this machine', () => {
    const of = (host: string): boolean => mayReadMetrics(ask('127.0.0.1', { host }));
    expect(
      ['localhost:3000', '127.0.0.1:3000', '[::1]:3000', 'evil.example:3000', 'localhost.evil.example'].map(of),
    ).toEqual([true, true, true, false, false]);
  });

  it('does not mistake the caller of a proxy for a local one', () => {
    for (const header of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip'])
      expect(mayReadMetrics(ask('127.0.0.1', { [header]: '127.0.0.1' }), token)).toBe(false);
  });

  it('lets the holder of the token read from anywhere', () => {
    const from = (authorization: string) => ask('192.0.2.7', { authorization, 'x-forwarded-for': '192.0.2.8' });
    expect(mayReadMetrics(from(`Bearer ${token}`), token)).toBe(true);
    for (const wrong of [`Bearer ${token}x`, token, `Basic ${token}`, 'Bearer '])
      expect([wrong, mayReadMetrics(from(wrong), token)]).toEqual([wrong, false]);
    expect(mayReadMetrics(from(`Bearer ${token}`))).toBe(false);
    // A proxy of this machine that adds no header of its own.
    expect(mayReadMetrics(ask('127.0.0.1', { authorization: 'Bearer another-token' }), token)).toBe(false);
  });
});
