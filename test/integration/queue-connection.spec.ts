import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { newIdentifier } from '@app/domain';
import { jobIdOf, openJobBackEnd, queueConnection, queueNames } from '@app/queue';
import { Worker } from 'bullmq';
import type { TestDatabase } from '../support/database';
import { createTestDatabase } from '../support/database';
import { until } from '../support/until';

/** A door to the database, shut at first: who knocks is sent away. */
class Door {
  isOpen = false;
  sentAway = 0;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly databaseUrl: string,
    private readonly server: Server,
  ) {
    server.on('connection', (outside) => this.answer(outside));
  }

  static async shut(databaseUrl: string): Promise<Door> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Door(databaseUrl, server);
  }

  get url(): string {
    const url = new URL(this.databaseUrl);
    url.host = `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return url.href;
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private answer(outside: Socket): void {
    if (!this.isOpen) {
      this.sentAway++;
      outside.destroy();
      return;
    }
    const { hostname, port } = new URL(this.databaseUrl);
    const inside = connect(Number(port), hostname);
    for (const [from, to] of [
      [outside, inside],
      [inside, outside],
    ]) {
      this.sockets.add(from);
      from.on('error', () => to.destroy()).pipe(to);
    }
  }
}

describe('a queue whose database cannot be reached at first', () => {
  let database: TestDatabase;
  let door: Door;

  beforeEach(async () => {
    database = await createTestDatabase();
    door = await Door.shut(database.url);
  });
  afterEach(async () => {
    door.close();
    await database.drop();
  });

  it('hands out jobs as soon as it can be', async () => {
    const { connection, factory } = queueConnection({ queueBackend: 'postgres' }, door.url);
    const drawn: string[] = [];
    const worker = new Worker(
      queueNames.images,
      async ({ data }) => void drawn.push((data as { taskId: string }).taskId),
      { connection },
      factory as never,
    );
    worker.on('error', () => undefined);
    const back = openJobBackEnd({ queueBackend: 'postgres' }, database.url, () => undefined);
    try {
      const taskId = newIdentifier();
      await back.addNow('images', [{ id: jobIdOf(taskId, 1), data: { taskId } }]);
      await until(async () => door.sentAway > 0, 'the worker has tried to reach it');
      door.isOpen = true;
      await until(async () => drawn.length > 0, 'the job is handed out');
      expect(drawn).toEqual([taskId]);
    } finally {
      await worker.close();
      await back.close();
    }
  });

  it('takes jobs as soon as it can be', async () => {
    const back = openJobBackEnd({ queueBackend: 'postgres' }, door.url, () => undefined);
    try {
      const job = { id: 'job', data: { taskId: newIdentifier() } };
      await expect(back.addNow('images', [job])).rejects.toThrow();
      door.isOpen = true;
      await back.addNow('images', [job]);
      expect(await back.presence('images', 'job')).toBe('waiting');
      await database.dataSource.transaction(async (manager) => {
        await back.add(manager, 'images', [{ ...job, id: 'other' }]);
      });
      expect(await back.presence('images', 'other')).toBe('waiting');
    } finally {
      await back.close();
    }
  });
});
