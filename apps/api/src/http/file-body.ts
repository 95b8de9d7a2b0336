import { DomainError } from '@app/domain';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';
import { sendContinue } from '../defence/json-body';
import type { SentFile } from './receive-file';

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
          `The body must be the file itself, not ${wrapping}: with curl, --data-binary @picture.png in place of -F or --form.`,
        );
    },
    begin: () => {
      sendContinue(request, answer);
      return request;
    },
    ...(length !== undefined && { declaredBytes: Number(length) }),
    noteHash: (hash) => {
      request.body = { sha256: hash };
    },
    answer,
  };
});

function wrappingOf(request: Request): 'a form that has it' | 'compressed' | undefined {
  if (request.is('multipart')) return 'a form that has it';
  return (request.headers['content-encoding'] ?? 'identity') === 'identity' ? undefined : 'compressed';
}
