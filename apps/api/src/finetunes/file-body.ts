import { defaults, DomainError, limits } from '@app/domain';
import { QueryParameter } from '@app/domain/http';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';
import { sendContinue } from '../defence/json-body';
import { inexactness } from '../defence/exact-json';
import type { SentFile } from './finetune-weights.service';

/** The body as a file that is still to come. */
export const FileBody = createParamDecorator((_: unknown, context: ExecutionContext): SentFile => {
  const http = context.switchToHttp();
  const [request, answer] = [http.getRequest<Request>(), http.getResponse<Response>()];
  const length = request.headers['content-length'];
  return {
    assertBare: () => {
      const wrapping = wrappingOf(request);
      if (wrapping)
        throw new DomainError(
          'unsupportedType',
          'UnsupportedMediaType',
          `The body must be the file itself, not ${wrapping}.`,
        );
    },
    begin: () => {
      sendContinue(request, answer);
      return request;
    },
    ...(length !== undefined && { declaredBytes: Number(length) }),
    answer,
  };
});

/** What came instead of the bare file. */
function wrappingOf(request: Request): 'a form that has it' | 'compressed' | undefined {
  if (request.is('multipart')) return 'a form that has it';
  return (request.headers['content-encoding'] ?? 'identity') === 'identity' ? undefined : 'compressed';
}

const { min, max } = limits.weightsScale;

/** The query of an upload of weights. */
export class WeightsQueryDto {
  @QueryParameter({
    description: 'By how much a LoRA changes the model. An upload without it sets 1, whatever it was before.',
    schema: { type: 'number', minimum: min, maximum: max, default: defaults.weightsScale },
    read: (sent, refuse) => {
      const value = /^\d+(\.\d+)?(e[+-]?\d+)?$/i.test(sent) ? Number(sent) : NaN;
      if (!(value >= min && value <= max)) return refuse(`must be a number from ${min} to ${max}`);
      const problem = inexactness(sent);
      return problem === undefined ? value : refuse(problem);
    },
  })
  scale: number = defaults.weightsScale;
}
