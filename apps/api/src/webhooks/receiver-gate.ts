import { Injectable } from '@nestjs/common';

/** Tries that one host gets at once, of all that this process makes at once. */
export const hostConcurrency = 4;
/** Consecutive failures after which a host is left alone for a while. */
export const failuresToOpen = 5;

const firstWaitMs = 10_000;
const longestWaitMs = 5 * 60_000;
/** A host that is busy is looked at again after this at the latest. */
const longestQueueMs = 30_000;
const shortestQueueMs = 250;
/** Hosts kept in mind; beyond that, those that are neither busy nor shut are forgotten. */
const maxHosts = 10_000;

interface Host {
  running: number;
  /** Failures since the last answer. */
  failures: number;
  /** Milliseconds since the epoch; the host is left alone until then. */
  shutUntil: number;
  /** What a try has taken of late. */
  typicalMs: number;
  /** Up to here the places have been promised to those that were sent away. */
  promisedUntil: number;
}

/** Either a place, to be left with how it went, or how long to stay away. */
export type Admission = { leave: (alive: boolean) => void } | { waitMs: number };

/**
 * Keeps a slow or dead receiver from delaying others: each host has a few places, and one that has failed again and again
 * is left alone for a growing while, after which a single try finds out whether it is back.
 * Known to this process only: it protects this process's own places, and a lost memory costs a few tries.
 */
@Injectable()
export class ReceiverGate {
  private readonly hosts = new Map<string, Host>();

  /** @param asked whether a person waits for this very try: a host that is left alone is tried all the same. */
  enter(host: string, { asked = false, now = Date.now() } = {}): Admission {
    const state = this.hostOf(host, now);
    const shut = state.failures >= failuresToOpen;
    if (shut && !asked) {
      if (now < state.shutUntil) return { waitMs: state.shutUntil - now };
      if (state.running > 0) return { waitMs: firstWaitMs };
    }
    if (state.running >= hostConcurrency) return { waitMs: this.promise(state, now) };
    state.running++;
    let left = false;
    return {
      leave: (alive) => {
        if (left) return;
        left = true;
        this.leave(host, state, alive, now);
      },
    };
  }

  /** Those that are sent away come back one after the other, at the pace at which places become free. */
  private promise(state: Host, now: number): number {
    state.promisedUntil = Math.max(now, state.promisedUntil) + state.typicalMs / hostConcurrency;
    return Math.round(Math.min(Math.max(state.promisedUntil - now, shortestQueueMs), longestQueueMs));
  }

  private leave(host: string, state: Host, alive: boolean, startedAt: number): void {
    const now = Math.max(Date.now(), startedAt);
    state.running--;
    state.typicalMs = 0.7 * state.typicalMs + 0.3 * (now - startedAt);
    state.failures = alive ? 0 : state.failures + 1;
    if (state.failures >= failuresToOpen)
      state.shutUntil = now + Math.min(firstWaitMs * 2 ** (state.failures - failuresToOpen), longestWaitMs);
    if (state.running === 0 && state.failures === 0) this.hosts.delete(host);
  }

  private hostOf(host: string, now: number): Host {
    const known = this.hosts.get(host);
    if (known) return known;
    if (this.hosts.size >= maxHosts)
      for (const [name, { running, shutUntil }] of this.hosts)
        if (running === 0 && shutUntil < now) this.hosts.delete(name);
    const fresh = { running: 0, failures: 0, shutUntil: 0, typicalMs: 1000, promisedUntil: 0 };
    this.hosts.set(host, fresh);
    return fresh;
  }
}
