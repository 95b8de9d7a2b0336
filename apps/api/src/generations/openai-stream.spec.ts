import { PassThrough } from 'node:stream';
import type { ImagesDto } from '@app/domain/http';
import type { WaitedExchange } from '../http/route.decorators';
import { OpenaiStream } from './openai-stream';

describe(OpenaiStream.name, () => {
  const answer = () =>
    Object.assign(new PassThrough({ highWaterMark: 1000 }), {
      status: () => ({ set: () => undefined }),
      flushHeaders: () => undefined,
    });
  const facts = { size: '512x512', quality: 'auto', background: 'opaque' } as const;
  const images = { created: 1, data: [{ b64_json: 'a'.repeat(2000) }, { b64_json: 'b'.repeat(2000) }] };
  const end = (response: PassThrough) =>
    new OpenaiStream(response as unknown as WaitedExchange['response'], 'image_generation', facts).end(
      images as unknown as ImagesDto,
    );

  it('keeps a picture back until its reader has taken the one before', async () => {
    const response = answer();
    const ended = end(response);
    const first = response.read() as Buffer;
    expect([String(first).includes('aaa'), response.read()]).toEqual([true, null]);
    let rest = '';
    response.on('data', (piece: Buffer) => (rest += String(piece)));
    await ended;
    expect([rest.includes('bbb'), response.writableEnded]).toEqual([true, true]);
  });

  it('ends with its reader', async () => {
    const response = answer();
    const ended = end(response);
    response.destroy();
    await ended;
    expect(response.writableEnded).toBe(false);
  });
});
