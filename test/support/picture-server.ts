import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { onLoopback } from './loopback';

/** A test's HTTP server on a loopback address, with the requested paths. */
export interface PictureServer {
  url: string;
  asked: string[];
  close(): Promise<void>;
}

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

/** All other paths are 404. */
export async function startPictureServer(paths: Record<string, Answer | Uint8Array>): Promise<PictureServer> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    const answer = paths[path];
    if (typeof answer === 'function') answer(response, request);
    else if (answer) response.end(answer);
    else response.writeHead(404).end('secret words of the server');
  });
  return { asked, ...(await onLoopback(server)) };
}
