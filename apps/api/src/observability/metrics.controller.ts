import { Metrics } from '@app/logging';
import { Controller, Get, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Response } from 'express';
import { Public } from '../auth/api-key.guard';

/** What the process measures, for Prometheus. */
@ApiExcludeController()
@Public()
@Controller('metrics')
export class MetricsController {
  constructor(private readonly metrics: Metrics) {}

  @Get()
  async read(@Res() response: Response): Promise<void> {
    const text = await this.metrics.text();
    response.set({ 'Content-Type': this.metrics.contentType, 'Cache-Control': 'no-store' }).end(text);
  }
}
