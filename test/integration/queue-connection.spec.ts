import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { once } from 'node:events';
import { newIdentifier } from '@app/domain';
import { jobIdOf, openJobBackEnd, queueConnection, queueNames } from '@app/queue';
import { Worker } from 'bullmq';
import type { TestDatabase } from '../support/database';
import { createTestDatabase } from '../support/database';
import { until } from '../support/until';

/** The end of the server's messages when it is ready for a query. */
const readyForQuery = Buffer.from('Z\0\0\0\x05I', 'latin1');
/** The same after a subscription. */
const subscribed = Buffer.concat([Buffer.from('LISTEN\0', 'latin1'), readyForQuery]);
const farewell = Buffer.from('SFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0', 'latin1');
/** The message with which a server ends a connection. */
const ending = Buffer.concat([Buffer.from('E'), Buffer.alloc(4), farewell]);
ending.writeUInt32BE(4 + farewell.length, 1);

/** A proxy to the database that rejects connections until it is opened. */
class Door {
  isOpen = false;
  sentAway = 0;
  /** The server ends each connection that is made from now on at the moment it has sent this. */
  lastWords?: Buffer;
  betrayed = 0;
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
    // The server's socket would lead past this door.
    url.searchParams.delete('host');
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
    if (this.lastWords) this.betray(outside, inside, this.lastWords);
    for (const [from, to] of [
      [outside, inside],
      [inside, outside],
    ]) {
      this.sockets.add(from);
      from.on('error', () => to.destroy()).pipe(to);
    }
  }

  /** Both messages reach the client in one chunk, as they do in a process that was busy meanwhile. */
  private betray(outside: Socket, inside: Socket, lastWords: Buffer): void {
    const write = outside.write.bind(outside);
    outside.write = (chunk: Buffer | string) => {
      const said = Buffer.from(chunk as Buffer);
      if (!said.subarray(-lastWords.length).equals(lastWords)) return write(said);
      this.betrayed++;
      inside.destroy();
      write(Buffer.concat([said, ending]));
      outside.destroySoon();
      return true;
    };
  }
}

describe('a queue whose database cannot be reached for a while', () => {
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

  /** A worker behind the proxy that records its tasks. */
  function startWorker(): { worker: Worker; drawn: string[] } {
    const { connection, factory } = queueConnection({ queueBackend: 'postgres' }, door.url);
    const drawn: string[] = [];
    const worker = new Worker(
      queueNames.images,
      async ({ data }) => void drawn.push((data as { taskId: string }).taskId),
      { connection },
      factory as never,
    );
    worker.on('error', () => undefined);
    return { worker, drawn };
  }

  it('hands out jobs as soon as it is reachable', async () => {
    const { worker, drawn } = startWorker();
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

  it('survives connections that end at the moment they are made', async () => {
    door.isOpen = true;
    const { worker, drawn } = startWorker();
    const back = openJobBackEnd({ queueBackend: 'postgres' }, database.url, () => undefined);
    const add = (taskId: string): Promise<void> =>
      back.addNow('images', [{ id: jobIdOf(taskId, 1), data: { taskId } }]);
    try {
      const tasks = [newIdentifier(), newIdentifier()];
      await add(tasks[0]);
      await until(async () => drawn.length === 1, 'it works');
      door.lastWords = readyForQuery;
      const isListening = `pid <> pg_backend_pid() AND datname = current_database() AND query LIKE '%LISTEN bullmq%'`;
      const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${isListening}`;
      await until(async () => (await database.dataSource.query<object[]>(end)).length > 0, 'it listened');
      await until(async () => door.betrayed >= 3, 'its connection is made anew');
      door.lastWords = undefined;
      await add(tasks[1]);
      await until(async () => drawn.length === 2, 'it works again');
      expect(drawn).toEqual(tasks);
    } finally {
      await worker.close();
      await back.close();
    }
  });

  it.each([
    ['it is made', readyForQuery],
    ['it has subscribed', subscribed],
  ])('hears of jobs again after a connection that ended at the moment %s', async (_, lastWords) => {
    door.isOpen = true;
    const { connection, factory } = queueConnection({ queueBackend: 'postgres' }, door.url);
    const listener = factory(queueNames.images, { connection }, { withBlockingConnection: true });
    listener.on('error', () => undefined);
    const back = openJobBackEnd({ queueBackend: 'postgres' }, database.url, () => undefined);
    const anHour = 3_600;
    let isOver = false;
    try {
      await listener.waitUntilReady();
      const [{ pid }] = await database.dataSource.query<{ pid: number }[]>(
        `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`,
        [queueNames.images],
      );
      await database.dataSource.query('SELECT pg_terminate_backend($1)', [pid]);
      door.lastWords = lastWords;
      await until(async () => {
        await listener.waitForJob(0.1).catch(() => undefined);
        return door.betrayed > 0;
      }, 'its connection was lost again');
      door.lastWords = undefined;
      let heard = false;
      const waiting = (async () => {
        while (!heard && !isOver) heard = !!(await listener.waitForJob(anHour).catch(() => undefined));
      })();
      await until(
        async () =>
          (
            await database.dataSource.query<object[]>(
              `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1
                 AND query LIKE '%LISTEN bullmq%'`,
              [queueNames.images],
            )
          ).length > 0,
        'it listens',
      );
      await back.addNow('images', [{ id: 'job', data: { taskId: newIdentifier() } }]);
      await until(async () => heard, 'it hears of the job', 30_000);
      await waiting;
      expect(listener.maximumBlockTimeout).toBeLessThanOrEqual(10);
    } finally {
      isOver = true;
      await listener.disconnectBlocking();
      await listener.close();
      await back.close();
    }
  });

  it('accepts jobs as soon as it is reachable', async () => {
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
