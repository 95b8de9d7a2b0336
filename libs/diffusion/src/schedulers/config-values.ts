import { SchedulerError } from './scheduler';
import type { SchedulerJson } from './scheduler-json';

function wrong(key: string, value: unknown, accepted: string): never {
  const shown = JSON.stringify(value)?.slice(0, 60) ?? typeof value;
  throw new SchedulerError(`${key} must be ${accepted}, but is ${shown}.`);
}

export function number(values: SchedulerJson, key: string, min: number, max: number): number {
  const value = values[key];
  if (typeof value === 'number' && value >= min && value <= max) return value;
  return wrong(key, value, `a number from ${min} to ${max}`);
}

export function integer(values: SchedulerJson, key: string, min: number, max: number): number {
  const value = values[key];
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  return wrong(key, value, `an integer from ${min} to ${max}`);
}

export function flag(values: SchedulerJson, key: string): boolean {
  const value = values[key];
  return typeof value === 'boolean' ? value : wrong(key, value, 'true or false');
}

export function text(values: SchedulerJson, key: string): string {
  const value = values[key];
  return typeof value === 'string' ? value : wrong(key, value, 'a string');
}

export function choice<T extends string>(values: SchedulerJson, key: string, accepted: readonly T[]): T {
  const value = values[key] as T;
  return accepted.includes(value) ? value : wrong(key, value, accepted.map((name) => `"${name}"`).join(' or '));
}

export function sigma(values: SchedulerJson, key: string): number | undefined {
  return values[key] === null ? undefined : number(values, key, 1e-6, 1e6);
}

export function steps(values: SchedulerJson, key: string): readonly number[] {
  const value = values[key];
  if (Array.isArray(value) && value.every((step) => Number.isInteger(step))) return value as number[];
  return wrong(key, value, 'a list of integers');
}

export function trainedBetas({ trained_betas: value }: SchedulerJson, count: number): Float32Array | undefined {
  if (value === null) return undefined;
  const isBeta = (beta: unknown) => typeof beta === 'number' && beta >= 1e-7 && beta <= 0.999;
  if (Array.isArray(value) && value.length === count && value.every(isBeta))
    return Float32Array.from(value as number[]);
  return wrong('trained_betas', value, `a list of ${count} numbers from 1e-7 to 0.999`);
}

export function optionalInteger(values: SchedulerJson, key: string, min: number, max: number): number | undefined {
  return values[key] === null ? undefined : integer(values, key, min, max);
}
