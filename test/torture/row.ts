import type { Site } from './site';

export type Size = 'short' | 'long';

/** The findings when everything had come to rest. */
export interface Figures {
  /** Requests for a picture that got a 201. */
  acknowledged: number;
  /** Of these, the records with a terminated status, or deleted by us. */
  terminated: number;
  /** Pictures, deliveries, receipts or records that exist more than once. */
  duplicates: number;
  /** Acknowledged requests without a row or an end, and webhooks that never came. */
  lost: number;
  /** Files without a row after the sweep, and rows without their file. */
  leaked: number;
  /** Responses of 500 and above; a 503 with Retry-After counts only if nothing was down. */
  serverErrors: number;
}

/** The outcome of one fault. */
export interface Outcome {
  figures: Figures;
  /** Why it did not pass; empty if it did. */
  problems: string[];
  /** Other measurements. */
  notes: Record<string, number | string>;
  /** Why it, or a part of it, was skipped. */
  skipped?: string;
}

/** A fault, and the check of how the service handles it. */
export interface Row {
  name: string;
  /** A name for several scenarios. */
  group?: string;
  /** Description of the fault. */
  title: string;
  /**
   * In the short form, the rows with the same one follow one another on one site, each with the processes that earlier
   * ones left.
   */
  sharedSite?: string;
  run(site: Site, size: Size): Promise<Outcome>;
}

/** The 95th percentile; 0 of none. */
export function p95(values: readonly number[]): number {
  return quantile(values, 0.95);
}

/** The smallest value that is not below `share` of all; 0 of none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}
