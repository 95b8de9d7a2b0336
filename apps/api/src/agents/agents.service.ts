import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Config, CONFIG } from '@app/config';
import { JsonLogger } from '@app/observability';
import { serviceVersion } from '@app/process';
import {
  createMcpHandler,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  specTypeSchemas,
} from '@modelcontextprotocol/server';
import { Inject, Injectable } from '@nestjs/common';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { OwnApi, RefusedError } from './own-api';
import { type ToolCall, tools } from './tools';

/** Streams of changes, of which this server has none, that a request may hold open. */
const maxSubscriptions = 1;

/** A request of an agent, whose key is known. */
export interface AgentRequest {
  headers: IncomingHttpHeaders;
  body: unknown;
  api: OwnApi;
}

/** A Model Context Protocol server without sessions: one for each request. */
@Injectable()
export class AgentsService {
  private listed?: ReturnType<typeof listed>;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly logger: JsonLogger,
  ) {}

  /** Answers a request; one whose agent leaves is given up. */
  async answer({ headers, body, api }: AgentRequest, response: ServerResponse): Promise<void> {
    const refusal = refusalOf(body);
    if (refusal) {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify(refusal));
      return;
    }
    const aborter = new AbortController();
    response.once('close', () => aborter.abort());
    const handler = createMcpHandler(() => this.serverFor(api, aborter.signal), {
      maxSubscriptions,
      onerror: ({ message }) => this.logger.debug('a call of an agent ended', { reason: message }),
    });
    try {
      const asked = new Request(new URL('/mcp', this.config.publicUrl), {
        method: 'POST',
        headers: new Headers(Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)])),
        signal: aborter.signal,
      });
      const answer = await handler.fetch(asked, { parsedBody: body });
      response.statusCode = answer.status;
      for (const [name, value] of answer.headers) if (name !== 'connection') response.setHeader(name, value);
      if (answer.body) await pipeline(Readable.fromWeb(answer.body as never), response);
      else response.end();
    } catch (error) {
      this.logger.debug('an agent was gone before its answer', { reason: (error as Error).message });
      response.destroy();
    } finally {
      await handler.close();
    }
  }

  /** @param gone aborted when the agent has left */
  private serverFor(api: OwnApi, gone: AbortSignal): Server {
    const server = new Server(
      { name: 'darkroom', title: 'Darkroom', version: serviceVersion },
      { capabilities: { tools: {} }, instructions: 'Draws pictures with the models that are installed here.' },
    );
    server.setRequestHandler('tools/list', () => ({ tools: (this.listed ??= listed()) }));
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
      const tool = tools.find(({ name }) => name === params.name);
      if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${params.name}.`);
      const { progressToken } = mcpReq._meta ?? {};
      const tell: ToolCall['tell'] = async (progress, total, message) => {
        if (progressToken === undefined) return;
        const told = { progressToken, progress, total, message };
        await mcpReq.notify({ method: 'notifications/progress', params: told });
      };
      try {
        const signal = AbortSignal.any([mcpReq.signal, gone]);
        return { content: await tool.run({ api, input: params.arguments ?? {}, signal, tell }) };
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error;
        return { isError: true, content: [{ type: 'text', text: error.message }] };
      }
    });
    return server;
  }
}

/** What a first request gets that is not as the protocol has it: the library calls that an error of its own. */
function refusalOf(body: unknown): object | undefined {
  const { id, method } = (body ?? {}) as { id?: unknown; method?: unknown };
  if (method !== 'initialize' || id === undefined) return undefined;
  const checked = specTypeSchemas.InitializeRequest['~standard'].validate(body);
  if (!('issues' in checked) || !checked.issues) return undefined;
  const [{ path = [], message }] = checked.issues;
  const place = path.map((part) => (typeof part === 'object' ? part.key : part)).join('.');
  const error = {
    code: ProtocolErrorCode.InvalidParams,
    message: `"${place}" is not as the protocol has it: ${message}.`,
  };
  return { jsonrpc: '2.0', id, error };
}

/** All tools, as agents are told them. */
const listed = () =>
  tools.map(({ name, title, description, input, isReadOnly = false }) => ({
    ...{ name, title, description, inputSchema: input() },
    annotations: { readOnlyHint: isReadOnly, destructiveHint: name === 'cancel_drawing' },
  }));
