import type { ImagesDto } from '@app/domain/http';
import { writePiece } from '../http/list.interceptor';
import { comment, frame, sendStreamHead } from '../http/server-sent-events';
import type { WaitedExchange, WaitedStream } from '../http/route.decorators';

/** What every event of a request says. */
export type StreamFacts = Pick<ImagesDto, 'size' | 'quality' | 'background'>;

/** An answer as a stream of OpenAI's events. */
export class OpenaiStream implements WaitedStream {
  constructor(
    private readonly response: WaitedExchange['response'],
    private readonly kind: 'image_generation' | 'image_edit',
    private readonly facts: StreamFacts,
  ) {
    sendStreamHead(response);
    response.flushHeaders();
  }

  sign(): void {
    this.response.write(comment);
  }

  /** The small picture of a step, which is a JPEG whatever the format of the pictures. */
  partial(jpeg: string, index: number): void {
    const now = Math.floor(Date.now() / 1000);
    // A reader that is behind needs none of them.
    if (this.response.writableNeedDrain || this.response.writableEnded) return;
    const picture = { b64_json: jpeg, created_at: now, partial_image_index: index, output_format: 'jpeg' };
    void this.send('partial_image', { ...picture, ...this.facts });
  }

  /** One event for each picture, as its reader takes them; each has the tokens of the request. */
  async end({ created, data, ...rest }: ImagesDto): Promise<void> {
    for (const picture of data)
      if (!(await this.send('completed', { ...picture, created_at: created, ...rest }))) return;
    this.response.end();
  }

  private send(what: string, event: object): Promise<boolean> {
    const type = `${this.kind}.${what}`;
    return writePiece(this.response, frame(type, { type, ...event }));
  }
}
