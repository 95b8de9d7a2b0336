import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Config, CONFIG } from '@app/config';
import { ForbiddenError } from '@app/domain';
import { JsonLogger } from '@app/observability';
import { serviceVersion } from '@app/process';
import { Controller, Inject, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeEndpoint } from '@nestjs/swagger';
import { createMcpHandler, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server';
import type { Request as ExpressRequest, Response as ExpressResponse } from 'express';
import { TakesBody } from '../docs/takes';
import { NeedsScope } from '../http/caller.decorator';
import { OwnApi, RefusedError } from './own-api';
import { type ToolCall, tools } from './tools';

/** Streams of changes, of which this server has none, that all clients together may hold open. */
const maxSubscriptions = 64;

/** The service for agents: a Model Context Protocol server over Streamable HTTP, without sessions. */
@Controller('mcp')
export class AgentsController {
  private readonly origins: ReadonlySet<string>;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly logger: JsonLogger,
  ) {
    this.origins = new Set([...config.corsOrigins, new URL(config.publicUrl).origin]);
  }

  /** Its tools check the scope of the key again: one that may only read draws nothing. */
  @Post()
  @NeedsScope('read')
  @TakesBody({ schema: { type: 'object' } })
  @ApiExcludeEndpoint()
  answer(@Req() request: ExpressRequest, @Res() response: ExpressResponse): void {
    const { origin } = request.headers;
    if (origin !== undefined && !this.origins.has(origin) && !this.origins.has('*'))
      throw new ForbiddenError(
        'OriginRefused',
        `Pages of ${origin.slice(0, 200)} may not call this; see CORS_ORIGINS.`,
      );
    void this.send(request, response);
  }

  private async send(request: ExpressRequest, response: ExpressResponse): Promise<void> {
    const aborter = new AbortController();
    response.once('close', () => aborter.abort());
    const api = new OwnApi(request.socket, request.headers.authorization!, this.config.publicUrl);
    const handler = createMcpHandler(() => this.serverFor(api, aborter.signal), {
      maxSubscriptions,
      onerror: ({ message }) => this.logger.debug('a call of an agent ended', { reason: message }),
    });
    try {
      const headers = new Headers(
        Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
      );
      const asked = new Request(new URL('/mcp', this.config.publicUrl), {
        method: 'POST',
        headers,
        signal: aborter.signal,
      });
      const answer = await handler.fetch(asked, { parsedBody: request.body as unknown });
      response.status(answer.status);
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
    server.setRequestHandler('tools/list', () => ({
      tools: tools.map(({ name, title, description, input, isReadOnly = false }) => ({
        ...{ name, title, description, inputSchema: input },
        annotations: { readOnlyHint: isReadOnly, destructiveHint: name === 'cancel_drawing' },
      })),
    }));
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
