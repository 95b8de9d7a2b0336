import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'pg';

/**
 * The baseline for the api: Node's own HTTP server and one statement per request, on a table whose row is like the
 * api's. It has no keys, checks nothing, and adds no job.
 */
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 20 });

const insert = `
INSERT INTO bare_records (id, prompt, negative_prompt, cfg, steps, seed, model, aspect_ratio, num_images, status, metadata, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`;
const select = 'SELECT * FROM bare_records WHERE id = $1';

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'POST') {
    const body = JSON.parse(await textOf(request)) as { prompt: string; steps: number };
    const id = randomBytes(18).toString('base64url');
    const row = {
      id,
      prompt: body.prompt,
      negative_prompt: null,
      cfg: 7.5,
      steps: body.steps,
      seed: 1,
      model: 'sd1.5',
      aspect_ratio: 'square',
      num_images: 1,
      status: 'queued',
      metadata: null,
      created_at: new Date(),
    };
    await pool.query(insert, Object.values(row));
    send(response, 201, row);
  } else {
    const { rows } = await pool.query<object>(select, [request.url?.split('/').at(-1)]);
    send(response, rows.length > 0 ? 200 : 404, rows[0] ?? {});
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function send(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}

async function main(): Promise<void> {
  await pool.query(`
    CREATE TABLE bare_records (
      id varchar(24) PRIMARY KEY, prompt text NOT NULL, negative_prompt text, cfg double precision NOT NULL, steps integer NOT NULL,
      seed bigint NOT NULL, model varchar(64) NOT NULL, aspect_ratio varchar(16) NOT NULL, num_images integer NOT NULL,
      status varchar(16) NOT NULL, metadata json, created_at timestamptz NOT NULL
    )`);
  const server = createServer((request, response) => {
    answer(request, response).catch((error: Error) => send(response, 500, { message: error.message }));
  });
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
}

process.once('disconnect', () => process.exit());
void main();
