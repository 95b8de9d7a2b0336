import { Injectable } from '@nestjs/common';

/** Attempts of one caller at one host at once, per process. */
export const hostConcurrency = 4;
/** Attempts of one caller at once, however many hosts its webhooks name. */
export const ownerConcurrency = 20;
/** After this many consecutive failures at a host, a caller's webhooks leave it alone for a while. */
export const failuresToOpen = 5;

const firstWaitMs = 10_000;
const longestWaitMs = 5 * 60_000;
/** A busy host is tried again after this long at the latest. */
const longestQueueMs = 30_000;
const shortestQueueMs = 250;
/** Remembered hosts of callers; beyond that, those that are neither busy nor blocked are forgotten. */
const maxHosts = 10_000;

/** Slots for attempts, and the return times of deliveries that found none. */
class Slots {
  running = 0;
  /** Of recent attempts. */
  private typicalMs = 1_000;
  /** Milliseconds since the epoch; until then the slots are promised to deliveries that were sent away. */
  private promisedUntil = 0;

  constructor(private readonly count: number) {}

  get isFull(): boolean {
    return this.running >= this.count;
  }

  leave(tookMs: number): void {
    this.running--;
    this.typicalMs = 0.7 * this.typicalMs + 0.3 * tookMs;
  }

  /** Deliveries that were sent away return one after the other, at the rate at which slots become free. */
  returnAfterMs(now: number): number {
    this.promisedUntil = Math.max(now, this.promisedUntil) + this.typicalMs / this.count;
    return Math.round(Math.min(Math.max(this.promisedUntil - now, shortestQueueMs), longestQueueMs));
  }
}

/** A host, for the webhooks of one caller. */
class Host extends Slots {
  /** Failures since the last response. */
  failures = 0;
  /** Milliseconds since the epoch; the host is left alone until then. */
  shutUntil = 0;
}

/** What an attempt says about its host: it answered, it failed to, or it was never contacted. */
export type ReceiverAnswer = 'answered' | 'failed' | 'not asked';

/** Either a slot, to be released with the outcome, or how long to stay away. */
export type GateEntry = { leave: (answer: ReceiverAnswer) => void } | { waitMs: number };

/** One attempt that needs a slot. */
export interface PlannedAttempt {
  host: string;
  ownerId: string;
  /** A person requested this attempt: even a blocked host is tried. */
  isRedelivery?: boolean;
}

/**
 * Keeps slow or dead receivers from delaying others: each caller has a few slots, fewer at each host, and a host that
 * fails repeatedly is left alone for a growing time, after which a single attempt finds out whether it is back. Callers
 * share none of this: many may have receivers at one host, and one hanging receiver must not block them. The state is
 * per process: it protects this process's own slots, and losing it costs a few attempts.
 */
@Injectable()
export class ReceiverGate {
  /** By caller and host. */
  private readonly hosts = new Map<string, Host>();
  private readonly owners = new Map<string, Slots>();

  enter({ host: hostName, ownerId, isRedelivery = false }: PlannedAttempt, now = Date.now()): GateEntry {
    const name = `${ownerId} ${hostName}`;
    const host = this.hostOf(name, now);
    const shut = host.failures >= failuresToOpen;
    if (shut && !isRedelivery) {
      if (now < host.shutUntil) return { waitMs: host.shutUntil - now };
      if (host.running > 0) return { waitMs: firstWaitMs };
    }
    const owner = this.owners.get(ownerId) ?? new Slots(ownerConcurrency);
    for (const slots of [host, owner]) if (slots.isFull) return { waitMs: slots.returnAfterMs(now) };
    this.owners.set(ownerId, owner);
    host.running++;
    owner.running++;
    let left = false;
    return {
      leave: (answer) => {
        if (left) return;
        left = true;
        const endedAt = Math.max(Date.now(), now);
        owner.leave(endedAt - now);
        if (owner.running === 0) this.owners.delete(ownerId);
        host.leave(endedAt - now);
        this.judge(name, host, answer, endedAt);
      },
    };
  }

  /** Owners whose slots are all taken: none of their deliveries can begin now. */
  fullOwners(): string[] {
    return [...this.owners].filter(([, slots]) => slots.isFull).map(([ownerId]) => ownerId);
  }

  private judge(name: string, host: Host, answer: ReceiverAnswer, now: number): void {
    if (answer === 'answered') host.failures = 0;
    if (answer === 'failed') host.failures++;
    if (answer === 'failed' && host.failures >= failuresToOpen)
      host.shutUntil = now + Math.min(firstWaitMs * 2 ** (host.failures - failuresToOpen), longestWaitMs);
    if (host.running === 0 && host.failures === 0) this.hosts.delete(name);
  }

  private hostOf(name: string, now: number): Host {
    const known = this.hosts.get(name);
    if (known) return known;
    if (this.hosts.size >= maxHosts)
      for (const [other, { running, shutUntil }] of this.hosts)
        if (running === 0 && shutUntil < now) this.hosts.delete(other);
    const fresh = new Host(hostConcurrency);
    this.hosts.set(name, fresh);
    return fresh;
  }
}
