import { defaults, limits } from '@app/domain';
import { Query } from '@nestjs/common';
import type { PipeTransform } from '@nestjs/common';
import { badParameter } from '../http/query-problems';
import { inexactness } from '../http/exact-json';

/** The `scale` query parameter, checked; 1 by default. */
export const ScaleQuery = () => Query(new ScalePipe());

class ScalePipe implements PipeTransform {
  /** @throws InvalidError naming the parameter. */
  transform({ scale }: Record<string, unknown>): number {
    if (scale === undefined) return defaults.weightsScale;
    const { min, max } = limits.weightsScale;
    const value = typeof scale === 'string' && /^\d+(\.\d+)?(e[+-]?\d+)?$/i.test(scale) ? Number(scale) : NaN;
    if (!(value >= min && value <= max)) throw badParameter('scale', `must be a number from ${min} to ${max}`);
    const problem = inexactness(scale as string);
    if (problem) throw badParameter('scale', problem);
    return value;
  }
}
