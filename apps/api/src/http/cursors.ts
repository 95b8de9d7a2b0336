import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto';
import { CursorKey } from '@app/domain';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

/** A cursor is one AES block: eight bytes of position, and eight that identify the list. */
const blockBytes = 16;
const positionBytes = 8;

interface Keys {
  cipher: Buffer;
  lists: Buffer;
}

/**
 * Turns positions in lists into cursors and back. A position outlives its element: a caller may delete what it reads.
 * It is encrypted, because it counts the records of all callers.
 */
@Injectable()
export class Cursors {
  private keys?: Promise<Keys>;

  constructor(private readonly dataSource: DataSource) {}

  /** @param list identifies the list among all others, its owner included. */
  async write(list: string, position: number): Promise<string> {
    const { cipher: key, lists } = await this.load();
    const block = Buffer.alloc(blockBytes);
    block.writeBigUInt64BE(BigInt(position));
    markOf(lists, list).copy(block, positionBytes);
    const cipher = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false);
    return Buffer.concat([cipher.update(block), cipher.final()]).toString('base64url');
  }

  /** @returns undefined for a text that is no cursor of this list. */
  async read(list: string, cursor: string): Promise<number | undefined> {
    const sent = Buffer.from(cursor, 'base64url');
    if (sent.length !== blockBytes) return undefined;
    const { cipher: key, lists } = await this.load();
    const decipher = createDecipheriv('aes-256-ecb', key, null).setAutoPadding(false);
    const block = Buffer.concat([decipher.update(sent), decipher.final()]);
    if (!timingSafeEqual(block.subarray(positionBytes), markOf(lists, list))) return undefined;
    return Number(block.readBigUInt64BE());
  }

  private load(): Promise<Keys> {
    this.keys ??= this.dataSource.manager.findOneByOrFail(CursorKey, { id: 1 }).then(({ secret }) => ({
      cipher: createHmac('sha256', secret).update('positions').digest(),
      lists: createHmac('sha256', secret).update('lists').digest(),
    }));
    // A failed look-up is not remembered.
    this.keys.catch(() => (this.keys = undefined));
    return this.keys;
  }
}

function markOf(key: Buffer, list: string): Buffer {
  return createHmac('sha256', key)
    .update(list)
    .digest()
    .subarray(0, blockBytes - positionBytes);
}
