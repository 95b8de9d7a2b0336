import { type Config, CONFIG } from '@app/config';
import { ForbiddenError } from '@app/domain';
import { Controller, Inject, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeEndpoint } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { TakesBody } from '../docs/takes';
import { OpenRequests } from '../defence/open-requests';
import { NeedsScope, OwnerId } from '../http/caller.decorator';
import { AgentsService } from './agents.service';
import { OwnApi } from './own-api';

/** The service for agents: the Model Context Protocol over Streamable HTTP. */
@Controller('mcp')
export class AgentsController {
  private readonly origins: ReadonlySet<string>;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly agents: AgentsService,
    private readonly openRequests: OpenRequests,
  ) {
    this.origins = new Set([...config.corsOrigins, new URL(config.publicUrl).origin]);
  }

  /** Its tools check the scope of the key again: one that may only read draws nothing. */
  @Post()
  @NeedsScope('read')
  @TakesBody({ schema: { type: 'object' } })
  @ApiExcludeEndpoint()
  answer(@OwnerId() ownerId: string, @Req() { headers, body, socket }: Request, @Res() response: Response): void {
    const { origin, authorization = '' } = headers;
    if (origin !== undefined && !this.origins.has(origin) && !this.origins.has('*'))
      throw new ForbiddenError(
        'OriginRefused',
        `Pages of ${origin.slice(0, 200)} may not call this; see CORS_ORIGINS.`,
      );
    const api = new OwnApi(socket, authorization);
    this.openRequests.add(ownerId, response, 'call of an agent', () => response.destroy());
    // The route is done: what follows may take minutes, and is no request that others wait behind.
    void this.agents.answer({ headers, body, api }, response);
  }
}
