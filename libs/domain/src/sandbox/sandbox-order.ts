import type { Metadata } from '../common/column';
import { FieldProblems } from '../errors/field-problems';

/** Orders that a sandbox key may give in `metadata.sandbox`. */
export interface SandboxOrder {
  /** Makes the task fail with this message. */
  fail?: string;
  /** Time until the task is settled; its step events are spread over it. */
  delayMs: number;
}

/** Limits of these fields. */
export const sandboxLimits = { failLength: 1000, delayMs: 600_000 } as const;

/**
 * Reads `{"sandbox": {"fail": "message", "delay_ms": 2000}}`; every part is optional.
 * @param pointer of the metadata
 * @param problems receives what is wrong.
 */
export function readSandboxOrder(
  metadata: Metadata | null | undefined,
  pointer = '/metadata',
  problems = new FieldProblems(),
): { order: SandboxOrder; problems: FieldProblems } {
  const order: SandboxOrder = { delayMs: 0 };
  const sandbox = (metadata as { sandbox?: unknown } | null | undefined)?.sandbox;
  if (sandbox === undefined) return { order, problems };
  const refuse = (at: string | undefined, message: string): void => problems.add(`${pointer}/sandbox`, at, message);
  if (typeof sandbox !== 'object' || sandbox === null || Array.isArray(sandbox))
    refuse(undefined, 'must be an object with "fail" and "delay_ms"');
  else
    for (const [name, value] of Object.entries(sandbox))
      if (name === 'fail') {
        if (typeof value === 'string' && value.length >= 1 && value.length <= sandboxLimits.failLength)
          order.fail = value;
        else refuse('fail', `must be a text of 1 to ${sandboxLimits.failLength} characters`);
      } else if (name === 'delay_ms') {
        if (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= sandboxLimits.delayMs)
          order.delayMs = Number(value);
        else refuse('delay_ms', `must be an integer from 0 to ${sandboxLimits.delayMs}`);
      } else refuse(name, 'is not known; "fail" and "delay_ms" are');
  return { order, problems };
}
