import type { FieldProblem } from '@app/domain';

/** RFC 9457 body of every error. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: string;
  errors?: readonly FieldProblem[];
}
