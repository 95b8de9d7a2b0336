import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Pool } from 'pg';

/**
 * The baseline for the api: Node's own HTTP server and one statement per request, on a table whose row is like the
 * api's. It has no keys, checks nothing, and adds no job.
 */
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 20 });

const columns = {
  id: 'varchar(24) PRIMARY KEY',
  prompt: 'text NOT NULL',
  negative_prompt: 'text',
  cfg: 'double precision NOT NULL',
  steps: 'integer NOT NULL',
  seed: 'bigint NOT NULL',
  model: 'varchar(64) NOT NULL',
  aspect_ratio: 'varchar(16) NOT NULL',
  num_images: 'integer NOT NULL',
  status: 'varchar(16) NOT NULL',
  metadata: 'json',
  created_at: 'timestamptz NOT NULL',
};
const names = Object.keys(columns);
const insert = `INSERT INTO bare_records VALUES (${names.map((_, i) => `$${i + 1}`).join(', ')})`;
const select = 'SELECT * FROM bare_records WHERE id = $1';

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'POST') {
    const body = JSON.parse(await text(request)) as { prompt: string; steps: number };
    const id = randomBytes(18).toString('base64url');
    const values = [id, body.prompt, null, 7.5, body.steps, 1, 'sd1.5', 'square', 1, 'queued', null, new Date()];
    await pool.query(insert, values);
    send(response, 201, Object.fromEntries(names.map((name, i) => [name, values[i]])));
  } else {
    const { rows } = await pool.query<object>(select, [request.url?.split('/').at(-1)]);
    send(response, rows.length > 0 ? 200 : 404, rows[0] ?? {});
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  const json = JSON.stringify(body);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(json) });
  response.end(json);
}

async function main(): Promise<void> {
  const types = Object.entries(columns).map((column) => column.join(' '));
  await pool.query(`CREATE TABLE bare_records (${types.join(', ')})`);
  const server = createServer((request, response) => {
    answer(request, response).catch((error: Error) => send(response, 500, { message: error.message }));
  });
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
}

process.once('disconnect', () => process.exit());
void main();
