import { type Config, CONFIG } from '@app/config';
import { mayReadMetrics, Metrics } from '@app/observability';
import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../http/caller.decorator';
import { HttpError } from '../http/http-errors';

class MetricsRefusedError extends HttpError<'unauthorized'> {
  constructor() {
    super(
      'unauthorized',
      'Unauthorized',
      'Metrics are for this machine itself, or for Authorization: Bearer <METRICS_TOKEN> where that is set.',
      { 'WWW-Authenticate': 'Bearer realm="darkroom metrics"' },
    );
  }
}

/** The metrics of the process, for Prometheus. */
@ApiExcludeController()
@Public()
@Controller('metrics')
export class MetricsController {
  constructor(
    private readonly metrics: Metrics,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** @throws MetricsRefusedError */
  @Get()
  async read(@Req() request: Request, @Res() response: Response): Promise<void> {
    if (!mayReadMetrics(request, this.config.metricsToken)) throw new MetricsRefusedError();
    const text = await this.metrics.text();
    response.set({ 'Content-Type': this.metrics.contentType, 'Cache-Control': 'no-store' }).end(text);
  }
}
