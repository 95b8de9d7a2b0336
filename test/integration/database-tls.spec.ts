import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assertMigrated, createDataSource, EmbeddedPostgres, migrate } from '@app/database';

/** Makes a certificate that nobody but itself vouches for. */
function selfSigned(folder: string, name: string): { cert: string; key: string } {
  const [cert, key] = [join(folder, 'server.crt'), join(folder, 'server.key')];
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`];
  const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', cert];
  execFileSync('openssl', [...args, ...subject], { stdio: 'ignore' });
  return { cert, key };
}

describe('A database whose server has a certificate of its own', () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-tls-'));
  let postgres: EmbeddedPostgres;
  let cert: string;
  /** The server's certificate names localhost. */
  const urlWith = (query: string, host = 'localhost'): string => {
    const address = new URL(postgres.url);
    address.hostname = host;
    address.search = query;
    return address.href;
  };

  beforeAll(async () => {
    chmodSync(folder, 0o711);
    const made = selfSigned(folder, 'localhost');
    cert = made.cert;
    postgres = await EmbeddedPostgres.start(folder);
    await postgres.stop();
    // PostgreSQL reads a key that belongs to its own user alone.
    const { uid, gid } = statSync(join(folder, 'postgres'));
    chownSync(made.key, uid, gid);
    chmodSync(made.key, 0o600);
    chmodSync(cert, 0o644);
    const settings = { ssl: 'on', ssl_cert_file: cert, ssl_key_file: made.key };
    postgres = await EmbeddedPostgres.start(folder, { settings });
  });
  afterAll(async () => {
    await postgres?.stop();
    rmSync(folder, { recursive: true });
  });

  it('is refused with both cures, which work', async () => {
    for (const look of [migrate, assertMigrated])
      await expect(look(urlWith('sslmode=require'))).rejects.toThrow(/sslrootcert=.* sslmode=no-verify/);
    for (const query of [`sslmode=verify-full&sslrootcert=${cert}`, `sslrootcert=${cert}`, 'sslmode=no-verify']) {
      await migrate(urlWith(query));
      const dataSource = await createDataSource(urlWith(query)).initialize();
      const used = await dataSource.query<unknown>('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()');
      await dataSource.destroy();
      expect(used).toEqual([{ ssl: true }]);
    }
  });

  it('is refused where the certificate is for another name', async () => {
    const query = `sslmode=verify-full&sslrootcert=${cert}`;
    await expect(migrate(urlWith(query, '127.0.0.1'))).rejects.toThrow(/for another name .* sslmode=no-verify/);
  });

  it('is refused in a sentence where it speaks no TLS', async () => {
    await expect(migrate(`${process.env.TEST_DATABASE_URL}&sslmode=require`)).rejects.toThrow(
      /sslmode=disable .*PGSSLMODE/,
    );
  });
});
