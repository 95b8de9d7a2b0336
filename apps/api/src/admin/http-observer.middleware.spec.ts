import { EventEmitter } from 'node:events';
import { JsonLogger, Metrics } from '@app/observability';
import type { Request, Response } from 'express';
import { HttpObserver } from './http-observer.middleware';

describe(HttpObserver.name, () => {
  it('writes down enough of a picture’s name to find it by, and too little to see it', () => {
    const lines: string[] = [];
    const observer = new HttpObserver(
      new Metrics(),
      new JsonLogger('api', 'debug', { write: (line) => void lines.push(line) }),
    );
    const response = Object.assign(new EventEmitter(), { writableFinished: true, statusCode: 200 });
    const params = { file: '6ypKKHg4W0SMXrfcqH-EnNQx.png' };
    const request = { method: 'GET', route: { path: '/images/:file' }, params };
    observer.observe(request as unknown as Request, response as unknown as Response, () => undefined);
    response.emit('close');
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0])).toMatchObject({ route: '/images/:file', params: { file: '6ypKKH…' }, status: 200 });
  });
});
