import type { Site } from './site';

export type Size = 'short' | 'long';

/** What was found when everything had come to rest. */
export interface Figures {
  /** Requests for a picture that were answered with 201. */
  acknowledged: number;
  /** Of those, the ones with a terminated status, or deleted by us. */
  terminated: number;
  /** Pictures, deliveries, receipts or records more than once. */
  duplicates: number;
  /** Acknowledged ones without a row or an end, and webhooks that never came. */
  lost: number;
  /** Files without a row after the sweep, and rows without their file. */
  leaked: number;
  /** Answers of 500 and above; a 503 with Retry-After is counted only where nothing was down. */
  serverErrors: number;
}

/** The outcome of one fault. */
export interface Outcome {
  figures: Figures;
  /** Why it did not pass; empty when it did. */
  problems: string[];
  /** What else was measured. */
  notes: Record<string, number | string>;
  /** Why it, or a part of it, was not tried. */
  skipped?: string;
}

/** A fault, and the check of what the service makes of it. */
export interface Row {
  name: string;
  /** A name for several rows. */
  group?: string;
  /** What is done to the service. */
  title: string;
  run(site: Site, size: Size): Promise<Outcome>;
}

/** The value below which 95 of 100 lie; 0 of none. */
export function p95(values: readonly number[]): number {
  return quantile(values, 0.95);
}

/** The smallest value that is not below `share` of all; 0 of none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}
