import type { ValueTransformer } from 'typeorm';

/** Reads PostgreSQL's bigint, which the driver returns as a string, as a number. For values below 2^53 only. */
export const bigintAsNumber: ValueTransformer = {
  to: (value?: number | null) => value,
  from: (value: string | number | null) => (value === null ? null : Number(value)),
};

/** A caller's own JSON value but null, kept and returned as it was sent. */
export type Metadata = string | number | boolean | object;
