import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { loadConfig } from '@app/config';
import { openQueueConnection, openWakeUps, WakeUps } from '@app/queue';
import { createTestDatabase, type TestDatabase } from '../support/database';
import { until } from '../support/until';

/** The end of the server's messages when it is ready for a query. */
const readyForQuery = Buffer.from('Z\0\0\0\x05I', 'latin1');
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

describe(WakeUps.name, () => {
  let database: TestDatabase;
  let door: Door;
  let errors: Error[];
  let opened: WakeUps[];

  beforeEach(async () => {
    database = await createTestDatabase();
    door = await Door.shut(database.url);
    errors = [];
    opened = [];
  });
  afterEach(async () => {
    await Promise.all(opened.map((wakeUps) => wakeUps.close()));
    door.close();
    await database.drop();
  });

  const open = (url: string): WakeUps => {
    const onError = (error: Error): void => void errors.push(error);
    const wakeUps = openWakeUps(openQueueConnection(loadConfig({ DATA_DIR: tmpdir() }), url, onError), onError);
    opened.push(wakeUps);
    return wakeUps;
  };

  it('wake one who listens, few times however often somebody asks at once', async () => {
    let looks = 0;
    open(database.url).listen(() => looks++);
    const asking = open(database.url);
    for (let n = 0; n < 100; n++) asking.ask();
    await until(async () => looks > 0, 'somebody looks');
    asking.ask();
    await until(async () => looks > 1, 'somebody looks again');
    expect(looks).toBeLessThan(5);
    expect(errors).toEqual([]);
  });

  it('are heard as soon as the database can be reached, and are quiet until then', async () => {
    let looks = 0;
    open(door.url).listen(() => looks++);
    const asking = open(database.url);
    asking.ask();
    await until(async () => door.sentAway > 0, 'it has tried to reach the database');
    door.isOpen = true;
    await until(async () => looks > 0, 'it looks', 30_000);
    expect(errors.length).toBeLessThan(20);
  });

  it('survive connections that end at the moment they are made', async () => {
    let looks = 0;
    door.isOpen = true;
    open(door.url).listen(() => looks++);
    const asking = open(database.url);
    asking.ask();
    await until(async () => looks === 1, 'it works');
    door.lastWords = readyForQuery;
    const isListening = `pid <> pg_backend_pid() AND datname = current_database() AND query LIKE '%LISTEN bullmq%'`;
    const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${isListening}`;
    await until(async () => (await database.dataSource.query<object[]>(end)).length > 0, 'it listened');
    await until(async () => door.betrayed >= 2, 'its connection is made anew', 30_000);
    door.lastWords = undefined;
    await until(async () => (asking.ask(), looks > 1), 'it works again', 30_000);
  });

  it('say whether the database can be reached', async () => {
    const wakeUps = open(door.url);
    await expect(wakeUps.check()).rejects.toThrow();
    door.isOpen = true;
    await open(door.url).check();
  });
});
